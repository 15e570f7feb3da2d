"""A part that uses all of the seams in the agent and on ranks."""

CELL_MAGICS = {"counting": "which counts the lines of the cell"}
OUTPUT_KINDS = {"lines": "counting.nothing"}
