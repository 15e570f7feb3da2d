"""Chooses how the ranks of a group are started: by the zygote where forking is safe, else as fresh processes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.system.limits import within

from .starter import FreshProcesses, OnExit, Starter, Zygote


@dataclass(frozen=True)
class Waiting:
    """Whoever waits for a starter: how long, and what it is told."""

    seconds: float
    on_import: Callable[[], None] = lambda: None  # torch is being imported
    on_note: Callable[[str], None] = lambda _: None  # a sentence for users


class Starters(Protocol):
    """Where the ranks of a group are started: here (StartMethod), or on nodes (agent/nodes/head.py)."""

    async def get(self, waiting: Waiting) -> Starter:
        """Return what starts them now. Raises JupyterDistError `start_failed`."""

    def children(self) -> set[int]:
        """Return the processes of this machine that they reap themselves."""

    async def settle(self) -> None:
        """Wait a moment for the processes that ended ranks had started."""

    async def stop(self) -> None:
        """End the processes they started besides ranks. Idempotent."""


class NoneHere:
    """Of a head, whose ranks are on nodes: nothing is imported on its machine."""

    async def get(self, waiting: Waiting) -> Starter:
        """Raise JupyterDistError `start_failed`."""
        raise JupyterDistError("start_failed", "This agent was started for ranks on other machines.")

    def children(self) -> set[int]:
        """Return none."""
        return set()

    async def settle(self) -> None:
        """Do nothing."""

    async def stop(self) -> None:
        """Do nothing."""


class StartMethod:
    """Holds the zygote, which preloads at once, and the starter that the group uses."""

    def __init__(self, preload: list[str], on_exit: OnExit) -> None:
        self._preload = preload
        self._on_exit = on_exit
        self._zygote = Zygote(preload, on_exit)
        self._fresh: FreshProcesses | None = None  # set when forking from the zygote proved unsafe
        self._was_asked = False

    async def get(self, waiting: Waiting) -> Starter:
        """Return the starter, with a new zygote if the old one was killed.

        Raises:
            JupyterDistError: `start_failed`, if torch cannot be imported, or not in time.
        """
        if self._fresh is None and self._zygote.is_lost and (self._was_asked or self._zygote.was_ready):
            await self._zygote.stop()
            self._zygote = Zygote(self._preload, self._on_exit)
        self._was_asked = True
        return self._fresh or await self._choose(waiting)

    def children(self) -> set[int]:
        """Return the pids that the starters reap themselves."""
        return {pid for starter in self._all() for pid in starter.children()}

    async def settle(self) -> None:
        """Wait a moment for the processes that ended ranks had started."""
        for starter in self._all():
            await starter.settle()

    async def stop(self) -> None:
        """End the processes they started besides ranks. Idempotent."""
        for starter in self._all():
            await starter.stop()

    def _all(self) -> list[Starter]:
        return [self._zygote] if self._fresh is None else [self._fresh, self._zygote]

    async def _choose(self, waiting: Waiting) -> Starter:
        if not self._zygote.warm.done():
            waiting.on_import()
        try:
            warm = await within(waiting.seconds, asyncio.shield(self._zygote.warm))
        except asyncio.TimeoutError as err:
            message = f"{sys.executable} did not import torch within {waiting.seconds:g} s."
            raise JupyterDistError("start_failed", message) from err
        if warm["t"] == "failed":
            last_lines = "\n".join(str(warm["traceback"]).strip().splitlines()[-4:])
            raise JupyterDistError("start_failed", f"{sys.executable} cannot import what ranks need.", last_lines)
        if warm["safe"]:
            return self._zygote
        waiting.on_note(f"Ranks are started as fresh processes, which is slower: {warm['reason']}.")
        await self._zygote.stop()
        self._fresh = FreshProcesses(self._preload, self._on_exit)
        return self._fresh
