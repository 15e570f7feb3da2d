"""The fixes with which unmodified training frameworks run in ranks, one file per framework."""
