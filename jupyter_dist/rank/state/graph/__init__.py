"""The graph of objects below the names of cells: what belongs together, and how each object is written."""
