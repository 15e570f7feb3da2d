"""Numbers in what ranks print: tokens of a line, and curves. Pure."""
