"""Turns journal records into views, in which equal output of several ranks is shown once (pure, no I/O)."""
