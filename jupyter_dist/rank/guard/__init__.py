"""Protects a rank from cells that replace, clear or close modules, handlers and descriptors that the rank needs."""
