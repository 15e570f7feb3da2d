"""Forming the process group anew in the same processes, after a hung collective had to be broken."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.frames import Header

if TYPE_CHECKING:
    from .group import Group

REJOIN_SECONDS = 60.0


class Reform:
    """Waits until no rank runs a cell, then has every rank leave and join again; variables are kept."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._task: asyncio.Task[None] | None = None
        self._needed = False
        self._interrupted = False

    def rank_replied(self, reply: Header) -> None:
        """Look for a process group that is broken, or in which an interrupt left a collective half done."""
        if reply.get("process_group") == "broken":
            self._needed = True
        if reply["status"] == "interrupted":
            self._interrupted = True
        self.poll()

    def forget(self) -> None:
        """The ranks are replaced: nothing is broken any more."""
        self._needed = self._interrupted = False
        if self._task is not None:
            self._task.cancel()

    def poll(self) -> None:
        """Begin if it is needed and possible; cells that are queued wait for it."""
        group = self._group
        if group.dispatcher.queue.in_state("running"):
            return
        # Ranks that began different numbers of collectives would pair the next one wrongly, or wait for ever.
        uneven = len({rank.collective_seq for rank in group.living()}) > 1
        needed = self._needed or (self._interrupted and uneven)
        self._needed = self._interrupted = False
        if not needed:
            return
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
            rank.collective_seq = 0
            rank.set_state("idle")
        group.tell(text)
        group.dispatcher.is_open = True
        group.dispatcher.pump()
