"""Chooses how the ranks of a group are started: by the zygote where forking is safe, else as fresh processes."""

from __future__ import annotations

import asyncio
import sys

from jupyter_dist.agent.processes.starter import FreshProcesses, OnExit, Starter, Zygote
from jupyter_dist.protocol.errors import JupyterDistError

from .group import Group


class StartMethod:
    """Holds the zygote, which preloads at once, and the starter that the group uses."""

    def __init__(self, preload: list[str], on_exit: OnExit) -> None:
        self._preload = preload
        self._on_exit = on_exit
        self._zygote = Zygote(preload, on_exit)
        self._fresh: FreshProcesses | None = None  # set when forking from the zygote proved unsafe
        self._was_asked = False

    async def get(self, group: Group) -> Starter:
        """Return the group's starter, with a new zygote if the old one was killed.

        Raises:
            JupyterDistError: `start_failed`, if torch cannot be imported, or not in time.
        """
        if self._fresh is None and self._zygote.is_lost and self._was_asked:
            await self._zygote.stop()
            self._zygote = Zygote(self._preload, self._on_exit)
        self._was_asked = True
        return self._fresh or await self._choose(group)

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

    async def _choose(self, group: Group) -> Starter:
        if not self._zygote.warm.done():
            for rank in group.ranks:
                if rank.state == "starting":
                    rank.set_state("importing")
        timeout = group.spec.start_timeout_seconds
        try:
            warm = await asyncio.wait_for(asyncio.shield(self._zygote.warm), timeout)
        except asyncio.TimeoutError as err:
            message = f"{sys.executable} did not import torch within {timeout:g} s."
            raise JupyterDistError("start_failed", message) from err
        if warm["t"] == "failed":
            last_lines = "\n".join(str(warm["traceback"]).strip().splitlines()[-4:])
            raise JupyterDistError("start_failed", f"{sys.executable} cannot import what ranks need.", last_lines)
        if warm["safe"]:
            return self._zygote
        group.note = f"Ranks are started as fresh processes, which is slower: {warm['reason']}."
        await self._zygote.stop()
        self._fresh = FreshProcesses(group.spec.preload, self._on_exit)
        return self._fresh
