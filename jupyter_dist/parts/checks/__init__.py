"""Checks: whether training is right, by what ranks can prove while it runs (docs/how-to/find-what-is-wrong.md)."""
