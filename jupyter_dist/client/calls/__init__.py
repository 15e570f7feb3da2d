"""Sends objects and functions to ranks, and returns their results."""
