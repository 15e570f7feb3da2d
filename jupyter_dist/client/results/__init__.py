"""What cells said, rank by rank, and as people read it."""
