"""Changes of the number of ranks of a group."""
