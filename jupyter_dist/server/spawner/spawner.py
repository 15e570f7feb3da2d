"""The interface of spawners, which start agents on this machine and find the agents that an earlier server left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.system import points

from .directories import GroupDirectory

ENTRY_POINTS = "jupyter_dist.spawners"
OWN = {"local": "jupyter_dist.server.spawner.local:LocalSpawner"}


class Spawner(ABC):
    """Starts agents, which start their ranks. One object per server, created when the server starts.

    A group has one directory on this machine with its agent's socket and journal, however its process is started.
    """

    refusal: JupyterDistError | None = None  # why it can start no group

    def __init__(self, parent: Path, preload: Sequence[str]) -> None:
        """Set up the spawner.

        Args:
            parent: where the directories of this user's groups are; private.
            preload: modules that agents import besides torch and IPython.
        """
        self._parent = parent
        self._preload = list(preload)

    @classmethod
    def problem(cls) -> str | None:
        """Return why the spawner cannot be used on this machine, with the remedy, as a sentence; None if it can.

        Called when the server starts and before each launch, so it must be fast.
        """
        return None

    def share_imports(self, linger_seconds: float, *, keep: bool) -> None:  # noqa: B027 - a spawner may do without
        """Let groups be forked from a process that has imported torch once, if this spawner can.

        Called once, before the first launch.

        Args:
            linger_seconds: how long such a process stays after the last server that used it; 0: use none.
            keep: whether it stays as long as this server.
        """

    @abstractmethod
    def directories(self) -> list[GroupDirectory]:
        """Return the directories of all groups, also of earlier servers. Called at start, and now and then."""

    @abstractmethod
    async def launch(self, python: str, env: dict[str, str] | None = None) -> GroupDirectory:
        """Start an agent in that interpreter; return its directory when its socket exists.

        The directory is locked by this server (`GroupDirectory.create`), and is removed if this raises.

        Raises:
            JupyterDistError: `bad_environment` with the end of the agent's log, `bad_directory`, `timed_out`.
        """

    async def launch_spare(self, python: str, env: dict[str, str] | None = None) -> GroupDirectory:
        """As `launch`, for a group that is not requested yet: it may take longer if its ranks start faster then."""
        return await self.launch(python, env)

    async def launch_head(self, python: str, env: dict[str, str] | None = None) -> GroupDirectory:
        """As `launch`, for a group whose ranks are on nodes: its agent need not import the modules of ranks."""
        return await self.launch(python, env)

    def archive(self) -> bytes:
        """Return the code of the agents as an archive (system/code/sources.py), for nodes whose job may wait.

        Empty: nodes run the package that is installed when they start.
        """
        return b""

    def begin(self, python: str, env: dict[str, str]) -> None:  # noqa: B027 - a spawner may do without
        """Begin to prepare for a launch that is likely to come, without waiting. Cannot fail."""

    def forkservers(self) -> list[int]:
        """Return the processes that are kept to make starts faster, also of other servers."""
        return []

    @abstractmethod
    def reap_soon(self) -> None:
        """Reap the processes of a group that was shut down, without waiting for them."""

    @abstractmethod
    def detach(self) -> None:
        """Leave running agents to the next server, when this one ends."""


class NoSpawner(Spawner):
    """In place of a spawner where there can be no groups: each start is refused with the reason."""

    def __init__(self, why: JupyterDistError) -> None:
        super().__init__(Path(), [])
        self.refusal = why

    def directories(self) -> list[GroupDirectory]:
        """Return none."""
        return []

    async def launch(self, python: str, env: dict[str, str] | None = None) -> GroupDirectory:
        """Raise the reason."""
        assert self.refusal is not None
        raise self.refusal

    def reap_soon(self) -> None:
        """Do nothing: there are no processes."""

    def detach(self) -> None:
        """Do nothing: there are no groups."""


def find(name: str) -> type[Spawner]:
    """Return the spawner with that name.

    Raises:
        JupyterDistError: `bad_request`, listing the known spawners; `bad_environment`, if it cannot be used here.
    """
    found = points.load(ENTRY_POINTS, Spawner, OWN)
    if name not in found:
        known = ", ".join(sorted(found))
        raise JupyterDistError(
            "bad_request", say("There is no spawner '%1'.", name), say("%1 is one of: %2.", "DistApp.spawner", known)
        )
    spawner: type[Spawner] = found[name]
    check_usable(spawner)
    return spawner


def check_usable(spawner: type[Spawner]) -> None:
    """Raise JupyterDistError `bad_environment` if the spawner cannot be used."""
    problem = spawner.problem()
    if problem is not None:
        message = say("The spawner %1 cannot be used here: %2", spawner.__name__, problem)
        raise JupyterDistError("bad_environment", message, say("Choose another one with %1.", "DistApp.spawner"))
