"""The code inside each rank process. torch lives here alone."""
