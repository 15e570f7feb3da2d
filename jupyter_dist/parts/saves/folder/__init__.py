"""Saves on disk: the layout of a folder, save.json, and what creates and removes them. Standard library only."""
