"""Answers of the HTTP API as typed objects."""
