"""Methods of the Python client for undo."""

# Options of runs that a group keeps for its cells, as an attribute.
KEPT_OPTIONS = {
    "keep_undo": "Whether cells keep the state before them for `undo`, unless `run` is called with `keep_undo`; False."
}
__all__: list[str] = []
