"""Resizes a group: ranks leave or are added, and the process group is created again in the processes that stay.

The ranks have consecutive numbers afterwards, in the order of before (docs/decisions/0045). Until all have
joined the new process group, nothing is given up: if that fails, the group has its earlier size again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.group.process_group import Revived
from jupyter_dist.agent.group.rejoin import rejoin, rejoin_with
from jupyter_dist.agent.group.replacing import copies
from jupyter_dist.agent.processes.ending import end_ranks, give_up
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.processes.starters import RankStarter
from jupyter_dist.agent.processes.starting.environment import rank_spec
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.protocol.parts import failure_of
from jupyter_dist.protocol.wire.specs import GroupSpec

from . import shapes
from .shapes import Shape, WantedSize

if TYPE_CHECKING:
    from jupyter_dist.parts.resizing.models import ResizeModel

PLACE_SECONDS = 10.0

log = logging.getLogger(__name__)


class Resize:
    """One change of the size of a group."""

    def __init__(self, group: AgentGroup, starter: RankStarter, wanted: WantedSize) -> None:
        """Plan the change.

        Raises:
            JupyterDistError: `bad_request` or `bad_environment`, if the group cannot have that size.
        """
        shapes.check(group.spec, wanted)
        self._group = group
        self._wanted = wanted
        self._starter = starter
        found = shapes.members(group.ranks, group.nodes, wanted.num_ranks)
        self._staying, self._leaving = found.staying, found.leaving
        nodes = [] if group.nodes is None else group.nodes.active
        self._before = Shape(group.spec, [(rank, rank.spec) for rank in group.ranks], nodes)
        group.num_shapes += 1
        self._number = group.num_shapes
        spec = shapes.resized(group.spec, found, wanted)
        self._fresh = [self._new_rank(spec, number) for number in range(len(self._staying), wanted.num_ranks)]
        places = [shapes.place(spec, number, rank.spec, self._number) for number, rank in enumerate(self._staying)]
        staying = list(zip(self._staying, places, strict=True))
        self._after = Shape(spec, [*staying, *((rank, rank.spec) for rank in self._fresh)], found.nodes)
        self._places = {rank.spec.rank: place.rank for rank, place in staying}
        self.report: ResizeModel = {
            "at": time.time(),
            "before": self._before.spec.world_size,
            "after": self._after.spec.world_size,
            "seconds": None,
            "error": None,
            "again": [],
            "copied": [],
            "differ": [],
            "resharded": [],
        }

    def begin(self) -> None:
        """Hold cells back, and show the group in its new size."""
        group = self._group
        self._since = time.monotonic()
        self._has_begun = False  # whether ranks may have taken their new places
        self._known = [(rank, rank.known) for rank in group.ranks]
        self._alike: list[str] = []
        self._sharded: list[list[str]] = []
        group.process_group.close()
        group.set_state("resizing")
        self._enter(self._after)

    async def run(self) -> None:
        """Carry out the change, or undo it; the group takes cells afterwards."""
        group, report = self._group, self.report
        try:
            revived = await self._change()
        except Exception as err:  # also an internal error: the ranks of before keep their variables
            if not isinstance(err, JupyterDistError):
                log.exception("Cannot resize the group")
            error = err if isinstance(err, JupyterDistError) else JupyterDistError("internal", failure_of(err))
            report["error"] = error.to_dict()
            await self._undo(error)
        else:
            report["again"] = [*map(_lacking, revived.lacking), *map(_left, revived.left)]
            for give, name in ((self._copy, "copied"), (self._divide, "divided")):
                try:
                    await give()
                except Exception as err:  # an internal error: the group has its new size, and its ranks live
                    log.exception("Cannot give ranks their variables")
                    report["again"].append(f"Variables could not be {name}: {failure_of(err)}. Make them again.")
            await end_ranks(self._leaving, "the group was resized", patient=True)
            resized = say("The group was resized from %1 to %2 ranks.", report["before"], report["after"])
            text = join(resized, *report["again"])
            group.add_note(text, until="variables" if report["again"] else "cell")
        report["seconds"] = time.monotonic() - self._since
        group.formed()

    # -- the change -----------------------------------------------------------------------------------

    async def _change(self) -> Revived:
        group, move = self._group, shapes.move(self._places)
        if self._fresh or self._leaving:  # else dead ranks leave, and no other loses anything
            await self._compare()
        self._has_begun = True
        if self._sharded and self._leaving:
            await copies.gather_parts(self._staying, self._leaving, self._sharded)
        if not self._fresh:
            return await rejoin(self._staying, group.stores.new(), move)
        await self._starter.prepare(group.preparing())
        store_path = group.stores.new()
        for rank in self._fresh:
            rank.take_place(replace(rank.spec, store_path=store_path))
        rejoining = asyncio.create_task(rejoin_with(self._fresh, self._staying, store_path, move), name="rejoin")
        try:
            await group.start_ranks(self._starter, self._fresh)
            revived = await rejoining
        except Exception:
            # A rank that still joins cannot join anything else: it must have failed first.
            await give_up(self._fresh, "the group could not be resized")
            await asyncio.gather(rejoining, return_exceptions=True)
            raise
        finally:
            rejoining.cancel()  # the end of the group: it would wait forever
        if revived is None:
            raise JupyterDistError("rank_dead", say("A rank died while the group was resized."))
        return revived

    async def _compare(self) -> None:
        """Find the names that all ranks have alike. Raises JupyterDistError if the user must choose about others."""
        found = await copies.compare([*self._staying, *self._leaving])
        is_whole = len(self._staying) + len(self._leaving) == self._before.spec.world_size
        self._sharded = found.sharded if is_whole else []  # else parts are lost
        self._alike, self.report["differ"] = found.alike, found.differ
        if found.differ and self._wanted.others == "refuse":
            why = await copies.differences([*self._staying, *self._leaving], found)
            raise copies.refusal(found.differ, why, bool(self._fresh))

    async def _copy(self) -> None:
        """Copy to new ranks what all others have alike; what could not be copied is reported."""
        if not self._fresh:
            return
        wanted = {*self._alike, *(self.report["differ"] if self._wanted.others == "copy" else ())}
        folder = copies.folder_of(self._group, str(self._number))
        try:
            self.report["again"] += await copies.copy(self._staying[0], self._fresh, folder, wanted)
            self.report["copied"] = sorted(name for name in wanted if name.isidentifier())
        except (JupyterDistError, OSError) as err:
            self.report["again"].append(f"Variables could not be copied to new ranks: {err} They begin without.")

    async def _divide(self) -> None:
        """Divide DTensors among the ranks of now, and name the objects that cells must make again."""
        before = self._before.spec.world_size
        try:
            if self._sharded and self._leaving:
                await copies.on_all(self._staying, "take")
            elif self._sharded:
                await copies.on_all(self._group.ranks, "spread", groups=self._sharded, size=before)
            answers = await copies.on_all(self._staying, "again", size=before)
        except JupyterDistError as err:
            names = ", ".join(name for keys in self._sharded for name in keys)
            self.report["again"].append(f"{names} could not be divided among the ranks of now: {err} Make it again.")
            return
        self.report["resharded"] = sorted(name for keys in self._sharded for name in keys if name.isidentifier())
        self.report["again"] += dict.fromkeys(str(one) for answer in answers for one in answer["again"])

    async def _undo(self, error: JupyterDistError) -> None:
        """Be of the earlier size again, with all ranks of before that live."""
        group = self._group
        number = self._before.spec.world_size
        wanted = self._after.spec.world_size
        self._enter(self._before)
        living, back = group.living(), shapes.move({after: before for before, after in self._places.items()})
        kept: str = say("All variables are kept.")
        try:
            if not self._has_begun:
                for rank, known in self._known:  # the ranks did not change
                    rank.known = known
            elif len(living) == number:
                await rejoin(living, group.stores.new(), back)
            else:
                kept = say("The ranks that live keep their variables. Replace the dead ones.")
                asked = (rank.request("take_place", PLACE_SECONDS, rank.encoded_place(back)) for rank in living)
                await asyncio.gather(*asked, return_exceptions=True)
        except Exception as err:  # also an internal error: the group must not be on its way for ever
            if not isinstance(err, JupyterDistError):
                log.exception("Cannot go back to the earlier size")
            words = err.message if isinstance(err, JupyterDistError) else failure_of(err)
            why = say("The process group could not be re-created (%1): re-create it with 'reform'.", words)
            kept = join(why, kept)
        text = say("The group could not be resized to %1 ranks, and has %2 as before:", wanted, number)
        group.add_note(join(text, error.message, error.hint, kept))

    def _enter(self, shape: Shape) -> None:
        group = self._group
        before = {rank.rank: rank for rank in group.ranks}
        group.take_shape(shape.spec, shape.ranks)
        if group.nodes is not None:
            group.nodes.take_shape(shape.spec, shape.nodes)
        now = {rank.rank: rank for rank in group.ranks}
        for number, rank in before.items():
            if now.get(number) is not rank:
                group.comms.rank_died(number)  # its widgets stay as they are

    def _new_rank(self, spec: GroupSpec, number: int) -> RankProcess:
        group, first = self._group, self._before.ranks[0][1]
        place = rank_spec(spec, number, "", group.generation, shapes.master(first))
        joining = replace(place, replaces=True, shape=self._number)
        return RankProcess(joining, group.journal, group, since=time.time())


def _lacking(name: str) -> str:
    return say("The process group %1 lost members: make it again on all ranks.", name)


def _left(name: str) -> str:
    return say("Ranks do not know the process group %1 alike: make it again on all ranks.", name)
