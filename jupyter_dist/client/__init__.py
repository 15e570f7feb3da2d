"""Groups of ranks from Python: from scripts, kernels of other notebooks, schedulers. docs/reference/python.md.

Everything uses the HTTP API (docs/api.md); torch is never imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jupyter_dist.client import ofparts
from jupyter_dist.client.answers.base import ApiList, ApiObject
from jupyter_dist.client.asynchronous.client import AsyncClient
from jupyter_dist.client.asynchronous.execution import AsyncExecution
from jupyter_dist.client.asynchronous.group import AsyncGroup
from jupyter_dist.client.blocking.execution import Execution
from jupyter_dist.client.blocking.group import Client, Group
from jupyter_dist.client.blocking.notebook_launcher import notebook_launcher
from jupyter_dist.client.results.comparing import VariableComparison
from jupyter_dist.client.results.result import CellError, RankError, RankResult, Result
from jupyter_dist.client.results.samples import SampleSeries
from jupyter_dist.protocol.errors import JupyterDistError, TimedOutError
from jupyter_dist.protocol.parts import find_modules

if TYPE_CHECKING:
    from jupyter_dist.client.ofparts import *  # noqa: F403  (at run time they are imported when they are used)

__all__ = [
    "ApiList",
    "ApiObject",
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
    "SampleSeries",
    "TimedOutError",
    "VariableComparison",
    "attach",
    "connect",
    "notebook_launcher",
]
__all__ += ofparts.__all__

connect = Client.connect


def attach(name: str | None = None, *, client: Client | None = None) -> Group:
    """Return the group with that name or id on this user's server; without a name, the only running one."""
    return (client or connect(private=True)).attach(name)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Find names that parts add."""
        for module in () if name.startswith("__") else find_modules("client").modules.values():
            if name in module.__all__:
                return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
