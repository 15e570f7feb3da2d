"""The states of groups, ranks and executions, and their transitions.

Everything that defines a state is in this one file (as in h11).
"""

from __future__ import annotations

from typing import Literal

# The server sets the last three: the agent does not respond, speaks another protocol, or has ended.
GroupState = Literal[
    "starting", "ready", "degraded", "restarting", "ending", "dead", "unresponsive", "incompatible", "lost"
]
RankState = Literal["starting", "importing", "joining", "idle", "busy", "unresponsive", "dead"]
ExecutionState = Literal["queued", "running", "ok", "error", "interrupted", "aborted", "lost"]
RankStatus = Literal["queued", "running", "ok", "error", "interrupted", "aborted", "lost"]

FINAL_EXECUTION_STATES = frozenset({"ok", "error", "interrupted", "aborted", "lost"})
STARTING_RANK_STATES = frozenset({"starting", "importing", "joining"})
GONE_GROUP_STATES = frozenset({"ending", "dead", "lost"})
UNREACHABLE_GROUP_STATES = frozenset({"unresponsive", "incompatible"})

RANK_TRANSITIONS: dict[str, frozenset[str]] = {
    "starting": frozenset({"importing", "joining", "idle", "dead"}),
    "importing": frozenset({"joining", "idle", "dead"}),
    "joining": frozenset({"idle", "unresponsive", "dead"}),
    "idle": frozenset({"busy", "unresponsive", "joining", "dead"}),
    "busy": frozenset({"idle", "unresponsive", "joining", "dead"}),
    "unresponsive": frozenset({"idle", "busy", "joining", "dead"}),
    "dead": frozenset({"starting"}),
}


def check_rank_transition(old: RankState, new: RankState) -> None:
    """Assert that a rank may change from `old` to `new`; a violation is a bug."""
    assert new == old or new in RANK_TRANSITIONS[old], f"rank cannot go from {old} to {new}"


def outcome(statuses: list[str]) -> ExecutionState:
    """Return the state of an execution whose ranks all ended, from their statuses: the worst one wins."""
    for state in ("lost", "error", "interrupted", "aborted"):
        if state in statuses:
            return state
    return "ok"
