"""Values of busy ranks: names of cells and of their running functions, read while the cell runs."""

WORDS = ("dist_peek", "peek_values", "peeked")  # by which code names it
NEWER_REQUESTS = {"peek": "read values while a cell runs"}
MAGICS = {"%dist_peek": "In Python, group.peek()."}
