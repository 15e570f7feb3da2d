"""The nodes of a group: follows the events of its allocation, and shows them in the group's model."""

from __future__ import annotations

import signal
import time
from collections.abc import Awaitable, Callable, Sequence

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.models.sentences import Sentence, join, say, words_of
from jupyter_dist.server.launchers.allocation import (
    Allocated,
    Allocation,
    Ended,
    EndsSoon,
    Event,
    NotKnown,
    Queued,
)
from jupyter_dist.server.launchers.nodefiles import AgentExited

CANCEL_SECONDS = 10.0
MAX_HOSTS_SHOWN = 4
MAX_TEXT = 600
MAX_LOG_BYTES = 300

_STATES: dict[type, str] = {Queued: "queued", Allocated: "allocated", NotKnown: "not_known", Ended: "ended"}


class GroupNodes:
    """The allocation of one group."""

    def __init__(self, allocation: Allocation) -> None:
        self._allocation = allocation
        self._warning: str | None = None
        self._allocated: Allocated | None = None
        self._failed: AgentExited | None = None  # the first agent that ended in another way than with the group
        self._given_at: float | None = None  # when the engine gave the nodes, by the monotonic clock
        self._late = ""  # which nodes have not joined long after that

    async def follow(self, on_change: Callable[[], None], on_failure: Callable[[str], Awaitable[None]]) -> None:
        """Call `on_change` after each event, and `on_failure` when nodes that have not joined never will."""
        async for event in self._allocation.events():
            self._take(event)
            on_change()
            if isinstance(event, Ended) or (self._failed is event and event is not None):
                await on_failure(self.failure())

    async def note_late(self, missing: Sequence[int], seconds: float) -> bool:
        """Note which nodes have not joined so long after the engine gave them; return whether that is new.

        What runs before a node agent has no time limit: a prologue, or an image that is fetched.
        """
        before, late = self._late, ""
        is_over = self._given_at is not None and time.monotonic() - self._given_at > seconds
        if missing and is_over and isinstance(self._allocation.status, Allocated):
            said = " ".join((await self._allocation.logs(missing[0], MAX_LOG_BYTES)).split())
            first, others = missing[0], len(missing) - 1
            late = join(
                say("Node %1 and %2 more did not join within %3 s.", first, others, f"{seconds:g}")
                if others
                else say("Node %1 did not join within %2 s.", first, f"{seconds:g}"),
                say("Its log ends with: %1", said)
                if said
                else say("Its log is empty: what runs before its agent has not ended."),
            )
        self._late = late
        return late != before

    @property
    def code(self) -> str:
        """Return the archive of the group's code that the job has brought to its nodes; empty: it has none."""
        return self._allocation.code

    def failure(self) -> str:
        """Return why nodes are missing, in sentences."""
        status = self._allocation.status
        why = [_exit(self._failed)] if self._failed else []
        return join(*why, status.why if isinstance(status, Ended) else "")

    async def release(self) -> list[str]:
        """Have the engine end the job, and remove its files; return unconfirmed steps, as sentences."""
        try:
            await self._allocation.cancel(CANCEL_SECONDS)
        except JupyterDistError as err:
            return [str(err)]
        self._allocation.forget()
        return []

    def model(self) -> models.AllocationModel:
        """Return the Allocation of docs/api.md."""
        status = self._allocation.status
        allocated = self._allocated
        text = self._text()
        return {
            "launcher": self._allocation.launcher.name,
            "state": _STATES[type(status)],  # type: ignore[typeddict-item]  # one of its words
            "text": text[:MAX_TEXT],
            "text_words": words_of(text) if len(text) <= MAX_TEXT else None,
            "job_id": (allocated.job_id or None) if allocated else None,
            "hosts": list(allocated.hosts) if allocated else [],
            "eta": status.eta if isinstance(status, Queued) else None,
            "can_start": not isinstance(status, Queued) or status.can_start,
            "ends_at": allocated.ends_at if allocated and not isinstance(status, Ended) else None,
            "warning": self._warning,
            "warning_words": words_of(self._warning),
        }

    def _take(self, event: Event) -> None:
        if isinstance(event, Allocated):
            self._allocated, self._warning = event, None
            self._given_at = self._given_at or time.monotonic()
        elif isinstance(event, Queued):
            self._given_at = None
        elif isinstance(event, EndsSoon):
            self._warning = join(event.why, say("That is at %1. Save what you need.", _clock(event.at)))
        elif isinstance(event, Ended):
            self._warning = None
        elif isinstance(event, AgentExited) and event.code != 0 and self._failed is None:
            self._failed = event

    def _text(self) -> str:
        status = self._allocation.status
        if isinstance(status, Queued):
            return join(status.reason, say("It is expected to start at %1.", _clock(status.eta)) if status.eta else "")
        if isinstance(status, Allocated):
            return join(_places(status), self._late)
        return status.why


def _places(status: Allocated) -> Sentence:
    """Return a sentence with the hosts, the job and its end, as far as they are known."""
    shown, more = ", ".join(status.hosts[:MAX_HOSTS_SHOWN]), len(status.hosts) - MAX_HOSTS_SHOWN
    hosts = say("%1 and %2 more", shown, more) if more > 0 else shown
    until = _clock(status.ends_at) if status.ends_at else ""
    if status.job_id:
        job = status.job_id
        return (
            say("Job %1 runs on %2, until %3.", job, hosts, until) if until else say("Job %1 runs on %2.", job, hosts)
        )
    if until:
        return say("Its node agents run on %1, until %2.", hosts, until)
    return say("Its node agents run on %1.", hosts)


def _exit(event: AgentExited) -> str:
    if event.code is None and event.signal is None:
        return event.text
    said = " ".join(event.text.split())[-MAX_TEXT:]
    if event.signal:
        how = say("The node agent on %1 was killed by %2", event.host, _signal_name(event.signal))
    else:
        how = say("The node agent on %1 ended with code %2", event.host, event.code)
    return say("%1: %2", how, said) if said else say("%1.", how)


def _signal_name(signum: int | None) -> str:
    try:
        return signal.Signals(signum or 0).name
    except ValueError:
        return f"signal {signum}"


def _clock(at: float) -> str:
    """Return a time of today as 14:05, of another day with its date."""
    then = time.localtime(at)
    is_today = time.strftime("%x", then) == time.strftime("%x")
    return time.strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M", then)
