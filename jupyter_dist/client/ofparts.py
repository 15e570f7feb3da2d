"""What parts add to the client, for type checkers. Made by `make generate` from their `client`."""

from jupyter_dist.parts.drift.client import CatchUpError, CaughtUp, CellDrift, NotRun, Step

__all__ = ["CatchUpError", "CaughtUp", "CellDrift", "NotRun", "Step"]
