"""The names of files with values of ranks, which ranks write, and which others list, check and remove."""

from __future__ import annotations

CHUNK_NAME = r"[a-z][0-9a-f]{32,64}"


def rank_file(rank: int) -> str:
    """Return the name of a rank's file."""
    return f"rank-{rank}.json"
