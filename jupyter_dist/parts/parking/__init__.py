"""Parking: a group gives its devices back while it is idle, and keeps all variables (docs/how-to/park.md)."""

WORDS = ("look_to_park", "parkingofgroup", "parkingofrank")
