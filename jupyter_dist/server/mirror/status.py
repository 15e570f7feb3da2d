"""The newest status of a group, as docs/api.md shows it, and waits for its changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.operations import GROUP_FIELDS
from jupyter_dist.protocol.ranks import MAX_RANKS, RankSet, parse_ranks, with_nodes
from jupyter_dist.protocol.states import AWAY_GROUP_STATES, GONE_GROUP_STATES, HOW_TO_BE_READY
from jupyter_dist.protocol.wire.specs import LOCAL, OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION, closed
from jupyter_dist.system.limits import within

# The notice about a node in these states while a cell runs.
_WORDS = {
    "unreachable": "Node {node} ({host}): {message}",
    "gone": "Node {node} ({host}) is gone: {message}.",
}
_FROM_SPEC = ("name", "accelerator", "backend", "devices", "world_size", "cwd")
_FROM_STATUS = (
    "state",
    "started_at",
    "ready_seconds",
    "generation",
    "replaced",
    "note",
    "note_words",
    "error",
    "lease_seconds",
    "ranks",
    "join",
    "ends_with",
)


WATCH_SECONDS = 1.0


class GroupStatus:
    """The newest status of one group."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {"state": "warm", "seq": 0}
        self.protocol = 0  # protocol version of its agent
        self.allocation: models.AllocationModel | None = None  # of the nodes, unknown to the agent
        self.of_parts: Callable[[GroupStatus], Mapping[str, Any]] = lambda _: {}  # what parts of this server add
        self.silence: JupyterDistError | None = None  # shown while the agent does not respond

    @property
    def state(self) -> str:
        """A GroupState, or `warm` while the agent has no group yet."""
        return self.reported_state if self.silence is None else "unresponsive"

    @property
    def reported_state(self) -> str:
        """Return the state that the agent reported last."""
        return str(self.fields["state"])

    @property
    def name(self) -> str:
        """Return the name that its user gave it."""
        return str(self.fields["spec"]["name"]) if "spec" in self.fields else ""

    @property
    def world_size(self) -> int:
        """Return the number of ranks."""
        return min(int(self.fields["spec"]["world_size"]), MAX_RANKS)

    @property
    def most_ranks(self) -> int:
        """Return the highest number of ranks that the group has had: their records are in its journal."""
        return min(max(self.world_size, int(self.fields.get("most_ranks") or 0)), MAX_RANKS)

    @property
    def node_ranks(self) -> list[RankSet]:
        """Return the ranks of each machine; none for a group on one machine."""
        return [RankSet.from_text(node["ranks"]) for node in self._nodes]

    def named(self, ranks: str) -> str:
        """Return a rank expression with nodes in the place of hosts' names."""
        return with_nodes(ranks, [node.get("host") for node in self._nodes])

    def rank_set(self, ranks: str) -> RankSet:
        """Return the ranks of an expression. Raises JupyterDistError: `bad_ranks`."""
        return parse_ranks(self.named(ranks), self.world_size, self.node_ranks)

    @property
    def is_gone(self) -> bool:
        """Whether the group will never take cells again."""
        return self.state in GONE_GROUP_STATES

    @property
    def pids(self) -> dict[int, int]:
        """Return its ranks on this machine by process id."""
        here = [rank for rank in self.fields.get("ranks", []) if rank.get("node") is None]
        return {rank["pid"]: rank["rank"] for rank in here if rank["pid"] is not None}

    @property
    def notices(self) -> list[str] | None:
        """Return sentences about nodes that will end or are lost; None for a group on one machine."""
        if not self._nodes:
            return None
        about = [self.allocation["warning"]] if self.allocation and self.allocation["warning"] else []
        lost = [node for node in self._nodes if node["state"] in _WORDS and node["message"]]
        return about + [_WORDS[node["state"]].format(**node) for node in lost]

    @property
    def _nodes(self) -> list[dict[str, Any]]:
        return self.fields.get("nodes") or []

    def model(self, group_id: str, running: list[str], queued: list[str]) -> models.GroupModel:
        """Return the Group of docs/api.md, with the ids of its unfinished executions."""
        spec = self.fields["spec"]
        shown: dict[str, Any] = {
            "id": group_id,
            "environment": self.fields.get("environment") or {},
            "protocol": self.protocol,
            **{field: spec[field] for field in _FROM_SPEC},
            "launcher": spec.get("launcher", LOCAL),
            "nodes": self._nodes,
            "spare_nodes": self.fields.get("spare_nodes") or [],
            **{field: self.fields.get(field) for field in (*_FROM_STATUS, *GROUP_FIELDS)},
            "parts": self.fields.get("parts") or {},
            "allocation": self.allocation,
            **self.of_parts(self),
            **({"join": None} if self.allocation else {}),  # the launcher runs the join command
            "running": running,
            "queued": queued,
        }
        # The status of an agent of another version is not checked.
        return cast(models.GroupModel, shown if self.silence is None else {**shown, **self._unanswered(self.silence)})

    def update(self, **changes: Any) -> None:
        """Change fields that the server sets itself."""
        self.fields = {**self.fields, **changes}

    def _unanswered(self, silence: JupyterDistError) -> dict[str, Any]:
        """Return the ranks of an agent that does not respond: of these it is only known that they had not died."""
        ranks = [
            {**rank, "state": "unresponsive", "message": silence.message} if rank["state"] != "dead" else rank
            for rank in self.fields.get("ranks", [])
        ]
        return {"state": "unresponsive", "error": silence.to_dict(), "ranks": ranks}

    def mark_lost(self, error: JupyterDistError) -> None:
        """Mark the group as lost: its agent has ended, and no rank can be reached."""
        self.silence = None
        gone = [{**node, "state": "gone"} for node in self._nodes]
        self.update(state="lost", error=error.to_dict(), ranks=self._dead_ranks(), nodes=gone, join=None)

    def mark_dead(self, error: JupyterDistError | None = None) -> None:
        """Mark the group as dead: its agent was ended, and its ranks with it; `error` is the reason if it failed."""
        self.silence = None
        self.update(state="dead", ranks=self._dead_ranks())
        if error is not None:
            self.update(error=error.to_dict(), join=None)

    def _dead_ranks(self) -> list[dict[str, Any]]:
        return [{**rank, "state": "dead", "execution_id": None} for rank in self.fields.get("ranks", [])]

    def mark_incompatible(self, group_json: dict[str, Any]) -> None:
        """Mark the group as one of another version: its ranks keep running, but this server cannot use them."""
        self.silence = None
        self.take_remains(group_json)
        version = group_json.get("version")
        by = f"jupyter_dist {version}" if version else "another version of jupyter_dist"
        error = JupyterDistError(
            "incompatible",
            say(
                "Group '%1' was started by %2 (protocol %3); this server speaks protocols %4 to %5.",
                self.name,
                by,
                f"{group_json.get('protocol')!r:.20}",
                OLDEST_PROTOCOL_VERSION,
                PROTOCOL_VERSION,
            ),
            say("Its ranks keep running. Use it from a server of that version, or shut it down."),
        )
        self.update(state="incompatible", error=error.to_dict())

    def take_remains(self, group_json: dict[str, Any]) -> None:
        """Fill the status in from group.json, the only source for a group whose agent cannot be reached."""
        self.protocol = int(group_json.get("protocol") or 0)
        self.fields = {
            "spec": closed(group_json["spec"]),
            "environment": group_json.get("environment"),
            "state": "lost",
            "started_at": group_json.get("created_at"),
            "generation": 0,
            "seq": 0,
            "ranks": [],
            "most_ranks": group_json.get("most_ranks"),
        }

    def check_reachable(self) -> None:
        """Raise JupyterDistError if the agent is alive but unreachable: requests would be carried out later."""
        if self.silence is not None:
            raise self.silence
        if self.state == "incompatible":
            raise JupyterDistError.from_dict(self.fields["error"])

    def check_awake(self) -> None:
        """Raise JupyterDistError `group_not_ready` while the tensors of a parked group are not where they belong."""
        if self.state in AWAY_GROUP_STATES:
            message = say("Group '%1' is %2.", self.name, say(self.state))
            raise JupyterDistError("group_not_ready", message, say("Resume it, or run a cell, which resumes it."))

    def check_takes_cells(self) -> None:
        """Raise JupyterDistError `group_not_ready` if the group is gone, or the reason why it cannot be reached."""
        self.check_reachable()
        if self.is_gone:
            because = (self.fields.get("error") or {}).get("message", "")
            message = f"Group '{self.name}' is {self.state}. {because}".strip()
            # After a start that failed there is no agent that could restart it.
            hint = HOW_TO_BE_READY["lost" if because and self.state == "dead" else self.state]
            raise JupyterDistError("group_not_ready", message, hint)


class Changes:
    """Wakes tasks that wait for a condition."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def wake(self) -> None:
        """Make all waiting tasks check their condition."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait_until(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Wait until the condition holds, at most this long; return whether it does."""
        deadline = time.monotonic() + seconds
        while not is_so():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.add(waiter)
            try:
                await within(left, waiter)
            except asyncio.TimeoutError:
                return is_so()
            finally:
                self._waiters.discard(waiter)
        return True
