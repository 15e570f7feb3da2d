"""Rank processes: how they start, what they write, how they end, and what is left of them."""
