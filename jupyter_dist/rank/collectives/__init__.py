"""torch's process group: creating it, waiting in it, and freeing a rank that hangs in it."""
