"""What a launcher is: it starts the agents of groups, and finds those that an earlier server left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server import points

from .directories import GroupDirectory

GROUP = "jupyter_dist.launchers"
OWN = {"local": "jupyter_dist.server.launcher.local:LocalLauncher"}


class Launcher(ABC):
    """Starts agents; the ranks are the agent's business. One object for each server, made when the server starts.

    Today a group is one directory on this machine that holds the agent's socket and journal, however its process came
    to be there. A launcher for other machines needs more than this, and this interface will grow for it.
    """

    def __init__(self, parent: Path, preload: Sequence[str]) -> None:
        """Take up work.

        Args:
            parent: where the directories of this user's groups are; private.
            preload: modules that agents import besides torch and IPython.
        """
        self._parent = parent
        self._preload = list(preload)

    @classmethod
    def problem(cls) -> str | None:
        """Why it cannot be used on this machine, and what to do, as a sentence; None where it can.

        Called when the server starts, and ahead of each launch: it must not take long.
        """
        return None

    @abstractmethod
    def directories(self) -> list[GroupDirectory]:
        """The directories of all groups, also of earlier servers. Called when the server starts, and now and then."""

    @abstractmethod
    async def launch(self, python: str, env: dict[str, str] | None = None) -> GroupDirectory:
        """Start an agent in that interpreter; return its directory, once its socket is there.

        The directory is this server's (`GroupDirectory.create`), and is removed when this raises.

        Raises:
            JupyterDistError: `bad_environment` with the agent's last words, `bad_directory`, `timed_out`.
        """

    @abstractmethod
    def reap_soon(self) -> None:
        """A group was shut down: collect its processes, without waiting for them."""

    @abstractmethod
    def detach(self) -> None:
        """The server ends, and the agents that still run stay for the next one."""


def find(name: str) -> type[Launcher]:
    """The launcher of that name.

    Raises:
        JupyterDistError: `bad_request`, naming those that there are; `bad_environment`, when it cannot be used here.
    """
    found = points.load(GROUP, Launcher, OWN)
    if name not in found:
        known = ", ".join(sorted(found))
        raise JupyterDistError(
            "bad_request", f"There is no launcher '{name}'.", f"DistApp.launcher is one of: {known}."
        )
    launcher: type[Launcher] = found[name]
    check_usable(launcher)
    return launcher


def check_usable(launcher: type[Launcher]) -> None:
    """Raise JupyterDistError `bad_environment` where it cannot be used."""
    problem = launcher.problem()
    if problem is not None:
        message = f"The launcher {launcher.__name__} cannot be used here: {problem}"
        raise JupyterDistError("bad_environment", message, "Choose another one by DistApp.launcher.")
