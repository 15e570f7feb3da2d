"""Replaces dead ranks: new processes, and the variables that they begin with."""
