"""Values of busy ranks in the Python client."""

__all__: list[str] = []
