"""Finds which collectives have begun, and in which call a rank waits; the side thread asks for it."""
