"""Resizing: a group gets another number of ranks, and ranks that stay keep their variables (docs/how-to/resize.md)."""

from jupyter_dist.protocol.models.sentences import say

WORDS = ("resize_?(parser|commands?|request|model|dialog|operation)", "dist_resize", "resized_text", "wanted_?size")
COMMON_WORDS = ("resize",)  # of windows, arrays and observers, too
NEWER_REQUESTS = {"resize": say("be resized")}
MAGICS = {"%dist_resize": "In Python, group.resize()."}
