"""Figures about names, folders, imports and prose, each with the places behind it; CONTRIBUTING.md says what they are for.

`python -m tests.house` prints the figures, `python -m tests.house circles` the places behind one of them,
and `python -m tests.house --lower` writes ceilings.json where a figure has become smaller than its ceiling.
"""
