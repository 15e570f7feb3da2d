"""Starts the ranks of a group and connects to them: on this machine (LocalStarter), or on nodes (nodes/head.py)."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.wire.specs import RankSpec

from .localchannel import LocalChannel
from .rank_process import RankChannel
from .starting.process import ProcessHandle, open_descriptors
from .starting.startmethod import PreloadingStarter, Preparing


class StartedRank(NamedTuple):
    """A rank's process, and the channel to it."""

    handle: ProcessHandle
    channel: RankChannel


class RankStarter(Protocol):
    """Starts ranks. Their ends are reported to the function that the starter was made with."""

    @property
    def is_lost(self) -> bool:
        """Whether the process that starts ranks has ended, and its ranks too. `prepare` starts another."""

    async def prepare(self, preparing: Preparing) -> None:
        """Wait until ranks can be started. Raises JupyterDistError `start_failed`."""

    async def start(self, spec: RankSpec) -> StartedRank:
        """Start a rank. Raises JupyterDistError `start_failed`, with the system's error."""

    def children(self) -> set[int]:
        """Return the processes of this machine that the starter reaps itself."""

    async def settle(self) -> None:
        """Wait a moment for the processes that ended ranks had started."""

    async def stop(self) -> None:
        """End the processes that the starter started besides ranks. Idempotent."""


class LocalStarter:
    """Starts ranks on this machine."""

    def __init__(self, processes: PreloadingStarter) -> None:
        self._processes = processes

    @property
    def is_lost(self) -> bool:
        """Whether the zygote has ended."""
        return self._processes.is_lost

    async def prepare(self, preparing: Preparing) -> None:
        """Wait until torch is imported. Raises JupyterDistError `start_failed`."""
        await self._processes.prepare(preparing)

    async def start(self, spec: RankSpec) -> StartedRank:
        """Start a rank with a new channel. Raises JupyterDistError `start_failed`."""
        channel = LocalChannel()
        try:
            with open_descriptors(channel.open) as fds:
                handle = await self._processes.start(spec, fds)
            await channel.connect()
        except BaseException:  # also when the start is given up: the rank must see that its channel is closed
            channel.close()
            raise
        return StartedRank(handle, channel)

    def children(self) -> set[int]:
        """Return the pids that are reaped by what starts ranks."""
        return self._processes.children()

    async def settle(self) -> None:
        """Wait a moment for the processes that ended ranks had started."""
        await self._processes.settle()

    async def stop(self) -> None:
        """End the zygote. Idempotent."""
        await self._processes.stop()


class NoStarter:
    """Starts nothing. The agent of a group on nodes has it until the group is known; nothing is imported there."""

    is_lost = False

    async def prepare(self, preparing: Preparing) -> None:
        """Raise JupyterDistError `start_failed`."""
        raise JupyterDistError("start_failed", "This agent was started for ranks on other machines.")

    async def start(self, spec: RankSpec) -> StartedRank:
        """Raise JupyterDistError `start_failed`."""
        raise JupyterDistError("start_failed", "This agent was started for ranks on other machines.")

    def children(self) -> set[int]:
        """Return no processes."""
        return set()

    async def settle(self) -> None:
        """Do nothing."""

    async def stop(self) -> None:
        """Do nothing."""
