"""A part that uses all of the seams in the agent and on ranks."""

NEWER_FIELDS = {"counting_as": "count under another name"}
CELL_MAGICS = {"counting": "which counts the lines of the cell"}
OUTPUT_KINDS = {"lines": "counting.nothing"}
