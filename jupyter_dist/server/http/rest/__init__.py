"""The handlers of REST: one for each path of the table of operations."""
