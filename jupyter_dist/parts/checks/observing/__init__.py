"""What a rank observes of its training, by torch's public hooks. Nothing that a cell computes changes."""
