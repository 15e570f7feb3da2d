"""Classes and methods that the Python client has for saves."""

from .results import CellToRerun, Restored

__all__ = ["CellToRerun", "Restored"]
