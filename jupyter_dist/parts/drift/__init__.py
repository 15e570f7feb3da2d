"""Which ranks have missed which cells, and how they catch up (docs/how-to/catch-up.md)."""

WORDS = ("drift", "catch_?up", "missed_?cells?")  # by which code names it
