"""Asks the ranks of a cell for their pace: their reports, their clocks, and their lines seen from outside."""
