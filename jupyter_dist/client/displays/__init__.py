"""Shows results while they grow: outputs in a notebook, lines in a terminal."""
