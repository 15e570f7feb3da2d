"""Forming the process group anew in the same processes, after a hung collective had to be broken."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from jupyter_dist.protocol.errors import JupyterDistError

if TYPE_CHECKING:
    from .group import Group

REJOIN_SECONDS = 60.0


class Reform:
    """Waits until no rank runs a cell, then has every rank leave and join again; variables are kept."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._task: asyncio.Task[None] | None = None
        self._needed = False

    def ask(self) -> None:
        """A rank reported that its process group is broken."""
        self._needed = True
        self.poll()

    def forget(self) -> None:
        """The ranks are replaced: nothing is broken any more."""
        self._needed = False
        if self._task is not None:
            self._task.cancel()

    def poll(self) -> None:
        """Begin if it is needed and possible; cells that are queued wait for it."""
        group = self._group
        if not self._needed or group.dispatcher.queue.in_state("running"):
            return
        self._needed = False
        if len(group.living()) < group.spec.world_size:
            group.note = (
                "The process group is broken and a rank is dead: collectives fail until a restart."
            )
            return
        group.dispatcher.is_open = False
        self._task = asyncio.create_task(self._run(), name="reform")

    async def _run(self) -> None:
        group = self._group
        store_path = str(group.new_store_path())
        for rank in group.living():
            rank.set_state("joining")
        try:
            answers = [rank.request("rejoin", REJOIN_SECONDS, store_path=store_path) for rank in group.living()]
            revived = sum(answer["revived"] for answer in await asyncio.gather(*answers))
        except JupyterDistError as err:
            text = f"The process group is broken and could not be formed anew ({err.message}). Restart the group."
        else:
            models = f" {revived} DistributedDataParallel models were taken along." if revived else ""
            text = f"The process group was formed anew; all variables are kept.{models}"
        for rank in group.living():
            rank.set_state("idle")
        group.tell(text)
        group.dispatcher.is_open = True
        group.dispatcher.pump()
