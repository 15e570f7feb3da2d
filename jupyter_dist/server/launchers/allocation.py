"""What happens to the nodes of a group: its allocation, and the events that a launcher publishes about it."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

from jupyter_dist.protocol.errors import JupyterDistError

from .nodefiles import AgentExited, AgentStarted, NodeFiles

STATE_FILE = "launcher.json"


# -- what happens to an allocation ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Queued:
    """The engine has accepted the job, and it waits: for resources, for a turn, or for nodes to boot."""

    reason: str
    eta: float | None = None  # when the engine expects it to start, in seconds since 1970


@dataclass(frozen=True)
class Allocated:
    """The engine has given nodes; it is starting the command on them."""

    hosts: tuple[str, ...]
    job_id: str
    ends_at: float | None = None  # a time limit


@dataclass(frozen=True)
class EndsSoon:
    """The engine is going to end the job at that time."""

    at: float
    why: str


@dataclass(frozen=True)
class NotKnown:
    """The engine does not answer. What it runs is most likely not affected, and nothing is concluded from it."""

    why: str


@dataclass(frozen=True)
class Ended:
    """The job is over; the last event."""

    why: str


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
    env: Mapping[str, str]  # all of the command's environment; without credentials of the server
    cwd: str
    options: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[Path, ...] = ()  # arguments of the command that are files: copied where nodes can read them


class NamedLauncher(Protocol):
    """A launcher as its allocations know it: the next server finds it by this name."""

    name: ClassVar[str]


class Allocation(ABC):
    """What a launcher has asked its engine for, for one group, and what happened to it since."""

    def __init__(self, launcher: NamedLauncher, directory: Path, files: NodeFiles, num_nodes: int) -> None:
        self.launcher = launcher
        self.directory = directory
        self.num_nodes = num_nodes
        self.files = files
        self.status: Queued | Allocated | NotKnown | Ended = Queued("It is being submitted.")
        self._events: list[Event] = []
        self._news = asyncio.Event()

    @property
    def has_ended(self) -> bool:
        """Whether the job is over."""
        return isinstance(self.status, Ended)

    def publish(self, event: Event) -> None:
        """Add an event; one that repeats the current status is dropped. Events of nodes are added before `Ended`."""
        if self.has_ended or event == self.status:
            return
        if isinstance(event, Ended):
            self.files.read()
            self.publish_node_events()
        if isinstance(event, (Queued, Allocated, NotKnown, Ended)):
            self.status = event
        self._events.append(event)
        self._news.set()
        self._news = asyncio.Event()

    async def events(self) -> AsyncIterator[Event]:
        """Yield what happened since the submission, or since it was adopted; ends after `Ended`."""
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
        """Publish what the nodes wrote about the command's starts and ends."""
        for started in self.files.new_starts():
            self.publish(started)
        for ended in self.files.new_ends():
            self.publish(ended)

    def save(self) -> None:
        """Write the state into the group's directory, for the next server. Raises OSError."""
        content = {"launcher": self.launcher.name, "num_nodes": self.num_nodes, "folder": str(self.files.folder)}
        write_private(self.directory / STATE_FILE, json.dumps({**content, "state": self.state()}))

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return what `Launcher.adopt` needs to find the job again, JSON-safe."""

    @abstractmethod
    async def cancel(self, grace_seconds: float) -> None:
        """Have the engine end the job, gracefully first; return when it has. Idempotent.

        Raises:
            JupyterDistError: `timed_out` or `launcher_failed`, if the engine does not confirm it.
        """

    async def logs(self, node: int | None, max_bytes: int) -> str:
        """Return the end of what the command printed on a node, or (None) of what the engine printed."""
        return await asyncio.to_thread(self.files.log, node, max_bytes)

    def forget(self) -> None:
        """Remove what the job left on disk, after it has ended."""
        self.files.remove()

    def undo(self) -> None:
        """Leave nothing of a job that could not be submitted, for the next server either."""
        self.forget()
        (self.directory / STATE_FILE).unlink(missing_ok=True)


def saved(directory: Path) -> dict[str, Any] | None:
    """Return what an allocation of that group saved; None if there is none, or it is damaged."""
    try:
        content = json.loads((directory / STATE_FILE).read_text())
        is_whole = isinstance(content["state"], dict) and isinstance(content["folder"], str)
        is_whole = is_whole and isinstance(content["launcher"], str) and isinstance(content["num_nodes"], int)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return cast("dict[str, Any]", content) if is_whole else None


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user can read, whole or not at all."""
    unready = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    fd = os.open(unready, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(fd, "w") as file:
            file.write(text)
        unready.replace(path)
    except BaseException:
        unready.unlink(missing_ok=True)
        raise


def launcher_failed(message: str, hint: str = "") -> JupyterDistError:
    """Return the error for an engine that refuses or fails."""
    return JupyterDistError("launcher_failed", message, hint)
