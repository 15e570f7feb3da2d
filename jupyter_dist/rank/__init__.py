"""The code inside each rank process, the only one that imports torch."""
