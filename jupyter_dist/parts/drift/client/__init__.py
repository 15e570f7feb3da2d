"""What it adds to the Python client."""

from .results import CatchUpError, CaughtUp, CellDrift, NotRun, Step

__all__ = ["CatchUpError", "CaughtUp", "CellDrift", "NotRun", "Step"]
RESULTS = {"Drift": "CellDrift"}  # an answer with methods of its own
