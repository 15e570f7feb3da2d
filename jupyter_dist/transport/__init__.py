"""How messages travel. Knows bytes, not meaning."""
