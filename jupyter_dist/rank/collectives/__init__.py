"""torch's process group: creating it, waiting in it, and interrupting a rank that hangs in it."""
