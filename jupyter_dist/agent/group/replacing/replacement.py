"""Replaces all dead ranks of a group; the others keep their processes and variables."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.group.rejoin import rejoin_with
from jupyter_dist.agent.processes.ending import give_up
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.processes.starters import RankStarter
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.wire.specs import ReplaceSpec

from .variables import VariableSource

if TYPE_CHECKING:
    from jupyter_dist.protocol.models import models

TakeBack = Callable[[], Awaitable[str]]  # returns a sentence on the outcome
BeginReplacing = Callable[[VariableSource, TakeBack | None], None]
# Brings the other ranks to a state that new ones can have, too, and begins before any cell can.
WayToReplace = Callable[[ReplaceSpec, BeginReplacing], Awaitable[None]]

log = logging.getLogger(__name__)


class Replacement:
    """One replacement of the dead ranks of a group."""

    def __init__(
        self,
        group: AgentGroup,
        starter: RankStarter,
        wanted: ReplaceSpec,
        source: VariableSource,
        take_back: TakeBack | None,
    ) -> None:
        self._group = group
        self._starter = starter
        self._source = source
        self._take_back = take_back  # what was done to the other ranks for it, if it fails
        self._numbers = str(RankSet(rank.rank for rank in group.ranks if rank.state == "dead"))
        self._report: models.ReplaceModel = {
            "at": time.time(),
            "ranks": self._numbers,
            "state": wanted.state,
            "save": None if wanted.restore is None else str(wanted.restore["name"]),
            "seconds": None,
            "error": None,
            "names": [],
            "again": [],
        }
        self._since = time.monotonic()

    def begin(self) -> None:
        """Hold cells back, and show the group as on its way."""
        self._group.replaced = self._report
        self._group.process_group.close()
        self._group.set_state("restarting")

    async def run(self) -> None:
        """Start the new ranks, and give them their variables; the group takes cells afterwards."""
        try:
            if (problem := await self._run()) is not None:
                self._group.add_note(join(problem, await self._taken_back()))
        finally:
            self._source.close()
        self._report["seconds"] = time.monotonic() - self._since
        self._group.formed()

    async def _taken_back(self) -> str | None:
        """Take back what was done to the others; return a sentence about it."""
        try:
            return None if self._take_back is None else await self._take_back()
        except Exception as err:  # also an internal error: the ranks that live stay as they are
            return self._failed(err, say("was not replaced, and what was done to the others is not taken back"))

    async def _run(self) -> str | None:
        """Replace the ranks; return a sentence if that failed."""
        group = self._group
        try:
            await self._source.look(group.living())
            await self._starter.prepare(group.preparing())
        except Exception as err:  # such as no descriptors for another zygote, or an internal error: nothing has changed
            return self._failed(err, say("could not be replaced"))
        await self._starter.settle()  # processes that dead ranks started may still hold device memory
        survivors, store_path = group.living(), group.stores.new()
        fresh = group.renew_dead(store_path)
        rejoining = asyncio.create_task(rejoin_with(fresh, survivors, store_path), name="rejoin")
        try:
            problem = await self._start_fresh(fresh)
            await asyncio.gather(rejoining, return_exceptions=True)
        finally:
            rejoining.cancel()  # an internal error, or the end of the group: it would wait forever
        return problem or await self._give(fresh, survivors)

    async def _start_fresh(self, fresh: list[RankProcess]) -> str | None:
        """Start ranks in place of dead ones; return a sentence if that failed: they are dead then."""
        try:
            await self._group.start_ranks(self._starter, fresh)
        except Exception as err:  # also an internal error: the group must continue with the ranks that live
            await give_up(fresh, "the replacement failed")  # later deaths would be attributed to the next attempt
            return self._failed(err, say("could not be replaced"))
        return None

    async def _give(self, fresh: list[RankProcess], survivors: list[RankProcess]) -> str | None:
        """Give the new ranks their variables, and note the outcome; return a sentence if all is taken back."""
        is_whole = True
        try:
            given = await self._source.give(fresh, survivors)
        except Exception as err:  # also an internal error: the new ranks live
            is_whole = self._take_back is None
            note = self._failed(
                err,
                say("was replaced, but its variables could not be brought back")
                if is_whole
                else say("could not be replaced"),
            )
        else:
            self._report["names"], self._report["again"] = given.names, given.again
            note = say("Rank %1 was replaced: %2", self._numbers, given.sentence)
        if not is_whole:
            await give_up(fresh, "the replacement failed")
            return note
        self._group.add_note(note, until="variables" if self._report["again"] else "cell")
        return None

    def _failed(self, err: Exception, what: str) -> str:
        """Report an error, and log it if it is an internal one; return the sentence for users."""
        error = err if isinstance(err, JupyterDistError) else JupyterDistError("internal", f"{err!r:.300}")
        if error is not err:
            log.error("Rank %s %s", self._numbers, what, exc_info=err)
        self._report["error"] = error.to_dict()
        return say("Rank %1 %2: %3", self._numbers, what, join(error.message, error.hint))
