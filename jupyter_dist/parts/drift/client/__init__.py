"""Classes and methods that the Python client has for missed cells."""

from .results import CatchUpError, CaughtUp, CellDrift, NotRun, Step

__all__ = ["CatchUpError", "CaughtUp", "CellDrift", "NotRun", "Step"]
RESULTS = {"Drift": "CellDrift"}  # the class of an answer
