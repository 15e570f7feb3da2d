"""Methods of the Python client for undo."""

__all__: list[str] = []
