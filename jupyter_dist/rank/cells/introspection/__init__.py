"""Looks at a rank, also while a cell runs: names, documentation, and where its code is."""
