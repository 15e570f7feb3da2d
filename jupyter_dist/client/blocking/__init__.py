"""The same without `await`, for scripts and notebooks."""
