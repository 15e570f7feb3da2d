"""Saves and restores of a whole group: executions on all ranks that count on all of them, or on none."""
