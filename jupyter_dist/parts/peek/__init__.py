"""Values of busy ranks: names of cells and of their running functions, read while the cell runs."""

from jupyter_dist.protocol.models.sentences import say

WORDS = ("dist_peek", "peek_values", "peeked")  # by which code names it
COMMON_WORDS = ("peek",)  # stores have a request of this name
NEWER_REQUESTS = {"peek": say("read values while a cell runs")}
MAGICS = {"%dist_peek": "In Python, group.peek()."}
