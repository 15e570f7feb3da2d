"""The link between head and node agents: its two ends, what is exchanged first, and the file to join with."""
