"""Metrics of the server for Prometheus: groups, ranks, cells, hangs, saves and devices, at its own `/metrics`."""

WORDS = ("prometheus",)  # by which code names it
