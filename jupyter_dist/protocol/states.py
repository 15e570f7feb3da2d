"""The states of groups, ranks, executions and process groups, and their transitions.

Everything that defines a state is in this one file (as in h11). docs/messaging.md shows the
same tables, as a test checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

# The server sets the last three: the agent does not respond, speaks another protocol, or has ended.
GroupState = Literal[
    "starting",
    "ready",
    "degraded",
    "restarting",
    "resizing",
    "parking",
    "parked",
    "resuming",
    "ending",
    "dead",
    "unresponsive",
    "incompatible",
    "lost",
]
# waiting: its agent has not joined; unreachable: the link is lost; gone: its agent ended, and its ranks with it.
NodeState = Literal["waiting", "joined", "unreachable", "gone"]
RankState = Literal["starting", "importing", "joining", "idle", "busy", "unresponsive", "dead"]
ExecutionState = Literal["queued", "running", "ok", "error", "interrupted", "aborted", "lost"]
RankStatus = ExecutionState  # of a rank's part of an execution
# Of the agent alone. closed: ranks start, are replaced or end; held: it is broken, and cells that run end first.
ProcessGroupState = Literal["closed", "open", "held", "rejoining"]

STARTING_RANK_STATES = frozenset({"starting", "importing", "joining"})
GONE_GROUP_STATES = frozenset({"ending", "dead", "lost"})
AWAY_GROUP_STATES = frozenset({"parking", "parked", "resuming"})  # its ranks live, and their tensors cannot be used
UNREACHABLE_GROUP_STATES = frozenset({"unresponsive", "incompatible"})
# What a user does in each state to have a group that is ready.
HOW_TO_BE_READY: Mapping[str, str] = {
    **dict.fromkeys(("starting", "restarting", "resizing", "parking", "resuming"), "Wait until it is ready."),
    "degraded": "Replace its dead ranks.",
    "parked": "Resume it first.",
    "ending": "Wait until it has ended, and start it again.",
    "dead": "Restart it.",
    "lost": "Shut it down and start it again.",
}


class IllegalTransitionError(RuntimeError):
    """Something went from one state to another that cannot follow it: a bug of ours, or a rank that makes things up."""


@dataclass(frozen=True)
class LifeCycle:
    """The states of one kind of thing, in order, each with the states that may follow it; staying is always allowed."""

    thing: str
    transitions: Mapping[str, frozenset[str]]

    def check(self, old: str, new: str) -> None:
        """Raise IllegalTransitionError unless `new` may follow `old`."""
        if new != old and new not in self.transitions[old]:
            message = f"A {self.thing} cannot go from '{old}' to '{new}'."
            raise IllegalTransitionError(message)

    @property
    def final(self) -> frozenset[str]:
        """The states that nothing follows."""
        return frozenset(state for state, following in self.transitions.items() if not following)


def _life(thing: str, **transitions: str) -> LifeCycle:
    return LifeCycle(thing, {state: frozenset(following.split()) for state, following in transitions.items()})


GROUP_LIFE = _life(
    "group",
    starting="ready ending dead",
    ready="degraded restarting resizing parking ending dead",
    degraded="restarting resizing ending dead",
    restarting="ready degraded ending dead",
    resizing="ready degraded ending dead",
    parking="parked ready degraded restarting ending dead",
    parked="resuming restarting ending dead",
    resuming="ready degraded parked restarting ending dead",
    ending="dead",
    dead="restarting ending",
)
RANK_LIFE = _life(
    "rank",
    starting="importing joining idle dead",
    importing="joining idle dead",
    joining="idle unresponsive dead",
    idle="busy unresponsive joining dead",
    busy="idle unresponsive joining dead",
    unresponsive="idle busy joining dead",
    dead="",
)
EXECUTION_LIFE = _life(
    "execution",
    queued="running aborted",
    running="ok error interrupted aborted lost",
    ok="",
    error="",
    interrupted="",
    aborted="",
    lost="",
)
PROCESS_GROUP_LIFE = _life(
    "process group",
    closed="open",
    open="held rejoining closed",
    held="open rejoining closed",
    rejoining="open closed",
)

FINAL_EXECUTION_STATES = EXECUTION_LIFE.final


def outcome(statuses: list[str]) -> ExecutionState:
    """Return the state of an execution whose ranks all ended, from their statuses: the worst one wins."""
    for state in ("lost", "error", "interrupted", "aborted"):
        if state in statuses:
            return state
    return "ok"
