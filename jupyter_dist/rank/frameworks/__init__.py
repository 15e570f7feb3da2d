"""Training frameworks, unchanged, in ranks: what has to be put right in each, one file per framework."""
