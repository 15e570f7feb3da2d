"""What a group computes on request: compared variables, cells that ranks missed, and the trace of a profile."""
