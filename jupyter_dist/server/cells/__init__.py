"""The runs of cells on ranks, and the code of cells as plain Python (pure)."""
