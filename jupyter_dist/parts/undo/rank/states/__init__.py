"""The states of objects, and how each is written back."""
