"""Protects a rank from cells that replace, clear or close what it needs."""
