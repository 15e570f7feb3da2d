"""Groups of ranks from Python: from scripts, kernels of other notebooks, schedulers. docs/reference/python.md.

Everything uses the HTTP API (docs/api.md); torch is never imported here.
"""

from __future__ import annotations

from jupyter_dist.client.answers.base import ApiList, ApiObject
from jupyter_dist.client.asynchronous.client import AsyncClient
from jupyter_dist.client.asynchronous.execution import AsyncExecution
from jupyter_dist.client.asynchronous.group import AsyncGroup
from jupyter_dist.client.blocking.execution import Execution
from jupyter_dist.client.blocking.group import Client, Group
from jupyter_dist.client.blocking.notebook_launcher import notebook_launcher
from jupyter_dist.client.results.comparing import VariableComparison, VariableTable
from jupyter_dist.client.results.curves import CurveTable
from jupyter_dist.client.results.drift import CatchUpError, CaughtUp, CellDrift, NotRun, Step
from jupyter_dist.client.results.holders import MemoryHolders
from jupyter_dist.client.results.result import CellError, RankError, RankResult, Result
from jupyter_dist.client.results.samples import SampleSeries
from jupyter_dist.client.results.saves import CellToRerun, Restored
from jupyter_dist.numbers.curves import Curve
from jupyter_dist.protocol.errors import JupyterDistError, TimedOutError

__all__ = [
    "ApiList",
    "ApiObject",
    "AsyncClient",
    "AsyncExecution",
    "AsyncGroup",
    "CatchUpError",
    "CaughtUp",
    "CellDrift",
    "CellError",
    "CellToRerun",
    "Client",
    "Curve",
    "CurveTable",
    "Execution",
    "Group",
    "JupyterDistError",
    "MemoryHolders",
    "NotRun",
    "RankError",
    "RankResult",
    "Restored",
    "Result",
    "SampleSeries",
    "Step",
    "TimedOutError",
    "VariableComparison",
    "VariableTable",
    "attach",
    "connect",
    "notebook_launcher",
]

connect = Client.connect


def attach(name: str | None = None, *, client: Client | None = None) -> Group:
    """Return the group with that name or id on this user's server; without a name, the only running one."""
    return (client or connect(private=True)).attach(name)
