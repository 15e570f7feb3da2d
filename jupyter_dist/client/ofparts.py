"""Names that parts add to the client. Made by `make generate` from their packages `client`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_dist.parts.curves.client import Curve, CurveTable
    from jupyter_dist.parts.drift.client import CatchUpError, CaughtUp, CellDrift, NotRun, Step
    from jupyter_dist.parts.saves.client import CellToRerun, Restored
    from jupyter_dist.parts.variables.client import MemoryHolders, VariableTable

__all__: list[str] = [
    "CatchUpError",
    "CaughtUp",
    "CellDrift",
    "CellToRerun",
    "Curve",
    "CurveTable",
    "MemoryHolders",
    "NotRun",
    "Restored",
    "Step",
    "VariableTable",
]
