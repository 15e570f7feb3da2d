"""The same API without `await`, for scripts and notebooks."""
