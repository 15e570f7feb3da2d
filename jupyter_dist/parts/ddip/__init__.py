"""The magics of Ddip (`%makedip`, `%%dip`), for notebooks that were written with it. Found by an entry point."""

WORDS = ("ddip", "dip_?magics", "dipper")  # by which code names it
