"""Finds which collectives have begun, and in which call a rank waits. Called in the side thread."""
