"""Saves: the variables of all ranks in files, and groups that begin with them (docs/how-to/save-and-restore.md)."""

WORDS = ("begin-with", "start-saved", "jupyter-dist:saves?")  # by which code names it
