"""`variables`, `compare` and `drift`: in what ranks differ."""

from __future__ import annotations

from jupyter_dist.protocol import differences, requests
from jupyter_dist.protocol.ranks import parse_ranks
from jupyter_dist.server.groups.comparison import compare
from jupyter_dist.server.groups.differences import list_variables
from jupyter_dist.server.groups.drift import find_drift
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.http.base import DistHandler
from jupyter_dist.server.http.operations import Answer, Operation, operation

_ERRORS = ("unknown_group", "bad_ranks", "group_not_ready", "incompatible", "agent_unreachable", "timed_out")


class VariablesHandler(DistHandler):
    """The variables of ranks."""

    @operation(
        Operation(
            "List the variables of ranks, equal ones once",
            "read",
            {200: Answer("The variables that cells made", differences.Variables)},
            query={"ranks": {"type": "string", "maxLength": 1000, "description": "A rank expression; all ranks."}},
            errors=_ERRORS,
        )
    )
    async def get(self, name: str) -> None:
        """Ask idle ranks; no code of users runs there, and those that run a cell are in `busy`."""
        group = self.group(name)
        self.answer(await list_variables(group.ask_variables, _chosen(group, self.query.get("ranks", "all"))))


class CompareHandler(DistHandler):
    """One variable on several ranks."""

    @operation(
        Operation(
            "Compare a variable between ranks",
            "execute",  # it takes the time of ranks
            {200: Answer("What differs, and what was not compared", differences.Comparison)},
            body=requests.CompareRequest,
            errors=(*_ERRORS, "not_found", "rank_dead"),
        )
    )
    async def post(self, name: str) -> None:
        """Compare checksums, then the elements of tensors that differ, a megabyte at a time and 64 MiB in all."""
        group = self.group(name)
        chosen = _chosen(group, self.body.get("ranks", "all"))
        self.answer(await compare(group.ask_variables, self.body["name"], chosen))


class DriftHandler(DistHandler):
    """The cells of ranks."""

    @operation(
        Operation(
            "List which version of which cell ran on which ranks, and which ranks have missed it",
            "read",
            {200: Answer("The cells since the last restart", differences.Drift)},
            errors=("unknown_group", "group_not_ready", "incompatible", "agent_unreachable"),
        )
    )
    async def get(self, name: str) -> None:
        """List the cells; ranks are not asked."""
        self.answer(await find_drift(self.group(name)))


def _chosen(group: ManagedGroup, ranks: str) -> list[int]:
    return list(parse_ranks(ranks, group.world_size, group.status.num_nodes))
