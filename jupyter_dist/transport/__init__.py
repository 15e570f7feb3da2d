"""Transports messages as bytes, without knowing their meaning."""
