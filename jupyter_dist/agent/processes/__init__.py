"""Rank processes: starting them, reading their output, ending them, and cleaning up after them."""
