"""Completions and documentation of ranks in the Python client."""

__all__: list[str] = []
