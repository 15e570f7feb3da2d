"""Writes objects as data, which runs no code where it is read (decision 39): for what other machines return."""
