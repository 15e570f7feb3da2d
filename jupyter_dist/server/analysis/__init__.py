"""What a group computes on request: compared variables, cells that ranks missed, curves, and the trace of a profile."""
