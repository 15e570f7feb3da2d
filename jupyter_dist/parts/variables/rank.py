"""The variables of a rank, and what holds its memory, read between cells; no code of users runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from jupyter_dist.rank.cells.values import answers, describing, holders
from jupyter_dist.rank.cells.values.opening import StepBudget, is_kind_of
from jupyter_dist.rank.collectives.torch_compat import without_functions
from jupyter_dist.rank.guard.own import json
from jupyter_dist.rank.memory import MemoryCounters
from jupyter_dist.rank.part import RankPart, RankRequest
from jupyter_dist.transport.frames import Header

if TYPE_CHECKING:
    from jupyter_dist.protocol.models.differences import VariableOnRank

MAX_NAMES = 2000
MAX_STEPS = 40_000  # of all names together: some 50 ms


class VariablesRank(RankPart):
    """Answers `variables`, between cells."""

    def idle_requests(self) -> Mapping[str, RankRequest]:
        """Return the handler of `variables`."""
        return {"variables": self._variables}

    def _variables(self, _: Header, payload: bytes) -> dict[str, Any]:
        """Return the rank's part of a list of variables, or of a comparison (docs/messaging.md)."""
        asked, namespace = json.loads(payload), self.core.namespace
        if asked["do"] != "list":
            return answers.about(namespace, asked)
        hidden = self.core.shell.user_ns_hidden
        with without_functions():
            held = holders.find(namespace, hidden, holders.last_error())
            variables, left_out = _listed(namespace, hidden, held)
            memory = _model(held, self.core.memory)
            return {"busy": False, "variables": variables, "left_out": left_out, "memory": memory}


def _listed(
    namespace: dict[Any, Any], hidden: Iterable[str], held: holders.HeldStorages
) -> tuple[dict[str, VariableOnRank], int]:
    """Return descriptions of the variables that cells have made, and how many were left out beyond MAX_NAMES."""
    unshown = set(hidden)
    names = [
        name
        for name, value in list(namespace.items())
        if type(name) is str and not name.startswith("_") and name not in unshown
        if not is_kind_of(value, ModuleType)
    ]
    sizes = held.variables()
    left = StepBudget(MAX_STEPS)
    rows = {name: describing.describe(namespace[name], sizes.get(name), left) for name in names[:MAX_NAMES]}
    return rows, max(0, len(names) - MAX_NAMES)


def _model(held: holders.HeldStorages, memory: MemoryCounters) -> dict[str, Any]:
    """Return the rank's HeldMemory, without its number, which the server knows."""
    largest = held.largest()
    return {
        "bytes": held.num_bytes,
        "devices": held.by_device,
        **memory.counters(),
        "holders": [holder.model() for holder in largest[: holders.MAX_LISTED]],
        "left_out": max(0, len(largest) - holders.MAX_LISTED),
        "is_whole": held.is_whole,
    }
