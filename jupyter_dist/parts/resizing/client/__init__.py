"""Resizing in the Python client."""

__all__: list[str] = []
