"""The code inside each rank process. Only this package imports torch."""
