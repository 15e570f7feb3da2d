"""Calls of libraries that a cell makes, and what they show."""
