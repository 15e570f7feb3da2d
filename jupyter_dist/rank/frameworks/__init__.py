"""Fixes that let unmodified training frameworks run in ranks, one file per framework."""
