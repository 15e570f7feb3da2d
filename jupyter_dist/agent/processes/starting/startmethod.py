"""Chooses how the ranks of a group are started: by the zygote where forking is safe, else as fresh processes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.system.limits import within
from jupyter_dist.transport.frames import Header

from .fresh import FreshProcesses
from .process import OnExit, ProcessHandle, ProcessStarter, RankDescriptors
from .zygote import ZygoteClient

MAX_REPLACED = 2  # zygotes, at each start


@dataclass(frozen=True)
class Preparing:
    """How long a starter may prepare, and the functions that it calls meanwhile."""

    seconds: float
    on_import: Callable[[], None] = lambda: None  # torch is being imported
    on_note: Callable[[str], None] = lambda _: None  # with a sentence for users


class PreloadingStarter(ProcessStarter, Protocol):
    """A starter that has to import torch first."""

    async def prepare(self, preparing: Preparing) -> None:
        """Wait until ranks can be started. Raises JupyterDistError `start_failed`."""


class StartMethod:
    """Holds the zygote, which preloads at once, and the starter that the group uses."""

    def __init__(self, preload: list[str], on_exit: OnExit) -> None:
        self._preload = preload
        self._on_exit = on_exit
        self._zygote = ZygoteClient(preload, on_exit)
        self._fresh: FreshProcesses | None = None  # set when forking from the zygote proved unsafe

    @property
    def is_lost(self) -> bool:
        """Whether the zygote has ended, and its ranks with it. `prepare` replaces it."""
        return self._fresh is None and self._zygote.is_lost

    async def prepare(self, preparing: Preparing) -> None:
        """Wait until ranks can be started, by a new zygote if the old one was killed.

        Raises:
            JupyterDistError: `start_failed`, if torch cannot be imported, or not in time.
        """
        if self._fresh is not None:
            return
        warm = await self._warm(preparing)
        for _ in range(MAX_REPLACED):  # killed, perhaps while it imported; if all are, that is reported
            if self._zygote.was_killed:
                await self._zygote.stop()
                self._zygote = ZygoteClient(self._preload, self._on_exit)
                warm = await self._warm(preparing)
        await self._choose(warm, preparing)

    async def start(self, spec: RankSpec, fds: RankDescriptors) -> ProcessHandle:
        """Start a rank. Raises JupyterDistError `start_failed`."""
        return await (self._fresh or self._zygote).start(spec, fds)

    def children(self) -> set[int]:
        """Return the pids that the starters reap themselves."""
        return {pid for starter in self._all() for pid in starter.children()}

    async def settle(self) -> None:
        """Wait a moment for the processes that ended ranks had started."""
        for starter in self._all():
            await starter.settle()

    async def stop(self) -> None:
        """End the processes that the starters started besides ranks. Idempotent."""
        for starter in self._all():
            await starter.stop()

    def _all(self) -> list[ProcessStarter]:
        return [self._zygote] if self._fresh is None else [self._fresh, self._zygote]

    async def _warm(self, preparing: Preparing) -> Header:
        """Return the zygote's report on its imports."""
        if not self._zygote.warm.done():
            preparing.on_import()
        try:
            return await within(preparing.seconds, asyncio.shield(self._zygote.warm))
        except asyncio.TimeoutError as err:
            message = say("%1 did not import torch within %2 s.", sys.executable, format(preparing.seconds, "g"))
            raise JupyterDistError("start_failed", message) from err

    async def _choose(self, warm: Header, preparing: Preparing) -> None:
        if warm["t"] == "failed":
            last_lines = "\n".join(str(warm["traceback"]).strip().splitlines()[-4:])
            raise JupyterDistError("start_failed", say("%1 cannot import what ranks need.", sys.executable), last_lines)
        if warm["safe"]:
            return
        preparing.on_note(say("Ranks are started as fresh processes, which is slower: %1.", warm["reason"]))
        await self._zygote.stop()
        self._fresh = FreshProcesses(self._preload, self._on_exit)
