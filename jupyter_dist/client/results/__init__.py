"""The output of cells, by rank and as readable text."""
