"""Groups of ranks from Python: scripts, other notebooks' kernels, schedulers. docs/client.md.

Everything goes through the HTTP API (docs/api.md); torch is never imported here.
"""

from __future__ import annotations

from jupyter_dist.protocol.errors import JupyterDistError

from .accelerate import notebook_launcher
from .aio import AsyncGroup
from .aioclient import AsyncClient
from .aioexecution import AsyncExecution
from .execution import Execution
from .group import Client, Group
from .result import CellError, RankError, RankResult, Result

__all__ = [
    "AsyncClient",
    "AsyncExecution",
    "AsyncGroup",
    "CellError",
    "Client",
    "Execution",
    "Group",
    "JupyterDistError",
    "RankError",
    "RankResult",
    "Result",
    "attach",
    "connect",
    "notebook_launcher",
]

connect = Client.connect


def attach(name: str | None = None, *, client: Client | None = None) -> Group:
    """The group of that name or id on this user's server; without a name, the only one that lives."""
    return (client or connect(private=True)).attach(name)
