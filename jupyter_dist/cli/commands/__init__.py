"""The commands: listing.py finds each by its name."""
