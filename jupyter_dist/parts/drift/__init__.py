"""Which ranks have missed which cells, and how they catch up (docs/how-to/catch-up.md)."""

# By which code names it. Clocks drift, too.
WORDS = ("drift_?(cells?|models?|notes?|command)", "cell_?drift", "[.]drift", "catch_?up", "missed_?cells?")
