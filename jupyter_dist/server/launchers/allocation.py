"""The allocation of a group's nodes, and the events that a launcher publishes about it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.protocol.ranks import in_proportion
from jupyter_dist.protocol.secrets import Secrets
from jupyter_dist.system.files.jsonfile import read_json
from jupyter_dist.system.files.private import write_private

from .nodefiles import AgentExited, AgentStarted, NodeFiles

STATE_FILE = "launcher.json"


# -- what happens to an allocation ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Queued:
    """The engine has accepted the job, and it waits: for resources, for a turn, or for nodes to boot."""

    reason: str
    eta: float | None = None  # when the engine expects it to start, in seconds since 1970
    can_start: bool = True  # False if it waits in vain: the engine will not start it as it was submitted


@dataclass(frozen=True)
class Allocated:
    """The engine has given nodes; it is starting the command on them."""

    hosts: tuple[str, ...]
    job_id: str
    ends_at: float | None = None  # a time limit


@dataclass(frozen=True)
class EndsSoon:
    """The engine will end the job at that time."""

    at: float
    why: str


@dataclass(frozen=True)
class NotKnown:
    """The engine does not answer. Its jobs most likely keep running, so the state of the job is not changed."""

    why: str


@dataclass(frozen=True)
class Ended:
    """The job is over; the last event."""

    why: str


RELEASED = say("The node agents have ended, and their nodes are released.")  # without a fault
CANCELLED = say("The job was cancelled with the group.")

Event = Queued | Allocated | AgentStarted | AgentExited | EndsSoon | NotKnown | Ended


# -- what is asked --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wanted:
    """The nodes of a group, and the command to start once on each."""

    group_id: str
    name: str
    directory: Path  # the group's, on the server's machine: the state is saved there
    num_nodes: int
    command: tuple[str, ...]
    env: Secrets  # the whole one of the command, without credentials of the server; the head sends the group's `env`
    cwd: str
    options: Mapping[str, Any] = field(default_factory=dict)
    ranks_per_node: tuple[int, ...] = ()  # of each node; empty: one
    files: tuple[Path, ...] = ()  # arguments of the command that are files: copied where nodes can read them
    python: str = ""  # the interpreter of the group; the command may begin with a prologue or a container

    @property
    def most_ranks(self) -> int:
        """Return how many ranks the node with the most has."""
        return max(self.ranks_per_node, default=1)

    def by_ranks(self, option: str) -> list[int]:
        """Return an amount for each node: the option for the node with the most ranks, as much per rank for others."""
        return in_proportion(int(self.options.get(option, 0)), self.ranks_per_node or (1,) * self.num_nodes)


class NamedLauncher(Protocol):
    """The part of a launcher that its allocations need: the name by which the next server finds it."""

    name: ClassVar[str]


class Allocation(ABC):
    """The job that a launcher has submitted for one group, and its events since."""

    def __init__(self, launcher: NamedLauncher, directory: Path, files: NodeFiles, num_nodes: int) -> None:
        self.launcher = launcher
        self.directory = directory
        self.num_nodes = num_nodes
        self.files = files
        self.output_folder: str | None = None  # for the logs, when the job is over
        self.max_wait_seconds: float | None = None  # for its first nodes; each server begins to count again
        self._waits_since = time.monotonic()  # no wall clock: it may jump
        self._given_up: str | None = None  # why the launcher has cancelled it
        self.status: Queued | Allocated | NotKnown | Ended = Queued(say("It is being submitted."))
        self._events: list[Event] = []
        self._news = asyncio.Event()

    @property
    def has_ended(self) -> bool:
        """Whether the job is over."""
        return isinstance(self.status, Ended)

    @property
    def code(self) -> str:
        """Return the path under which nodes see the code that the job has brought; empty if they do not."""
        return ""

    def publish(self, event: Event) -> None:
        """Add an event, unless it repeats the current status. Events of nodes are added before `Ended`."""
        if self.has_ended or event == self.status:
            return
        if isinstance(event, Ended):
            self.files.read()
            self.publish_node_events()
            event = Ended(self._given_up) if self._given_up else event
        if isinstance(event, Allocated) and self.max_wait_seconds is not None:
            self._has_started()
        if isinstance(event, (Queued, Allocated, NotKnown, Ended)):
            self.status = event
        self._events.append(event)
        self._news.set()
        self._news = asyncio.Event()

    async def events(self) -> AsyncIterator[Event]:
        """Yield the events since the job was submitted or adopted, up to `Ended`."""
        position = 0
        while True:
            while position < len(self._events):
                event = self._events[position]
                position += 1
                yield event
                if isinstance(event, Ended):
                    return
            await self._news.wait()

    def publish_node_events(self) -> None:
        """Publish the starts and ends of the command that the nodes wrote."""
        for started in self.files.new_starts():
            self.publish(started)
        for ended in self.files.new_ends():
            self.publish(ended)

    def is_overdue(self, now: float) -> bool:
        """Whether the job has waited for nodes as long as it may, by the monotonic clock."""
        most = self.max_wait_seconds
        return isinstance(self.status, Queued) and most is not None and now - self._waits_since > most

    async def give_up(self) -> None:
        """Cancel a job that is overdue. Raises JupyterDistError, as `cancel`."""
        reason = self.status.reason if isinstance(self.status, Queued) else ""
        self._given_up = join(say("The job waited as long as 'max_wait' allows, and was cancelled."), reason)
        await self.cancel(0.0)

    def _has_started(self) -> None:
        """Have no limit for waiting any more, not even if the job is requeued."""
        self.max_wait_seconds = None
        with contextlib.suppress(OSError):
            self.save()

    def save(self) -> None:
        """Write the state into the group's directory, for the next server. Raises OSError."""
        content: dict[str, Any] = {
            "launcher": self.launcher.name,
            "num_nodes": self.num_nodes,
            "folder": str(self.files.folder),
        }
        content |= {"output_folder": self.output_folder, "max_wait_seconds": self.max_wait_seconds}
        write_private(self.directory / STATE_FILE, json.dumps({**content, "state": self.state()}))

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return the state from which `Launcher.adopt` finds the job again, JSON-safe."""

    @abstractmethod
    async def cancel(self, grace_seconds: float) -> None:
        """Have the engine end the job, gracefully first; return when the job has ended. Idempotent.

        Raises:
            JupyterDistError: `timed_out` or `launcher_failed`, if the engine does not confirm it.
        """

    async def logs(self, node: int | None, max_bytes: int) -> str:
        """Return the end of the command's output on a node, or (None) of the engine's output."""
        return await asyncio.to_thread(self.files.log, node, max_bytes)

    def forget(self) -> None:
        """Remove the files of the job, after it has ended; its logs are copied to the output folder before."""
        if self.output_folder is not None:
            self.files.copy_logs(Path(self.output_folder))
        self.files.remove()

    def undo(self) -> None:
        """Remove everything of a job that could not be submitted, also the state for the next server."""
        self.forget()
        (self.directory / STATE_FILE).unlink(missing_ok=True)


def saved(directory: Path) -> dict[str, Any] | None:
    """Return the state that an allocation of that group saved; None if there is none, or it is damaged."""
    try:
        content = read_json(directory / STATE_FILE)
        is_whole = isinstance(content["state"], dict) and _is_folder_of(directory.name, content["folder"])
        is_whole = is_whole and isinstance(content["launcher"], str) and type(content["num_nodes"]) is int
        is_whole = is_whole and isinstance(content.get("output_folder"), str | None)
        is_whole = is_whole and isinstance(content.get("max_wait_seconds"), int | float | None)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return cast("dict[str, Any]", content) if is_whole else None


def _is_folder_of(group_id: str, folder: Any) -> bool:
    """Whether a path is the folder of a job of this group, or is in the group's: it is removed with its content."""
    path = Path(folder)
    return path.is_absolute() and ".." not in path.parts and group_id in path.parts[-2:]


def reported(engine: str, words: str) -> str:
    """Return a sentence that quotes an engine; empty if there are no words."""
    return say("%1 says: %2.", engine, words.rstrip(".;")) if words else ""


def unwritten(err: OSError) -> str:
    """Return why a job cannot be started."""
    return say("The files of the job cannot be written: %1: %2.", err.strerror, err.filename)


def launcher_failed(message: str, hint: str = "") -> JupyterDistError:
    """Return the error for an engine that refuses or fails."""
    return JupyterDistError("launcher_failed", message, hint)
