"""What a group computes on request: compared variables."""
