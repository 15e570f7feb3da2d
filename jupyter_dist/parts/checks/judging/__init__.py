"""Judges the reports of ranks. Pure."""
