"""A rank that gives its device memory back: its tensors keep their identity, and their bytes are elsewhere."""
