"""The REST handlers, one file per noun."""
