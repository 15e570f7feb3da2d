"""Calls of libraries that a cell makes."""
