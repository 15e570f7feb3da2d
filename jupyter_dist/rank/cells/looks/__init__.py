"""Looks at a rank, also while a cell runs: where its code is, what else acts there, and what its names are for."""
