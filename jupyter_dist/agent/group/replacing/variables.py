"""The variables that new ranks begin with: none, or copies of what the other ranks have alike."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.processes.starting.leftparts import LeftParts
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say

from . import copies


class Given(NamedTuple):
    """What new ranks were given."""

    names: list[str]
    again: list[str]  # sentences on what cells must make again
    sentence: str  # for users, after "Rank 1 was replaced: "


class VariableSource(Protocol):
    """Where the variables come from."""

    async def look(self, survivors: Sequence[RankProcess]) -> None:
        """Read the source before anything changes. Raises JupyterDistError."""

    async def give(self, fresh: Sequence[RankProcess], survivors: Sequence[RankProcess]) -> Given:
        """Give the variables to ranks that have joined. Raises JupyterDistError if some could not be given."""

    def close(self) -> None:
        """Release files and locks. Idempotent."""


class NoVariables:
    """New ranks begin empty."""

    async def look(self, survivors: Sequence[RankProcess]) -> None:
        """Do nothing."""

    async def give(self, fresh: Sequence[RankProcess], survivors: Sequence[RankProcess]) -> Given:
        """Give nothing."""
        shards = "What was sharded over all ranks lacks its part: make it again on all ranks, and load a checkpoint."
        gone = say("its variables are gone, the other ranks keep theirs.")
        return Given([], [], join(gone, shards))

    def close(self) -> None:
        """Do nothing."""


class Copies:
    """New ranks get copies of the lowest survivor's variables: of what all survivors have alike, or of all."""

    def __init__(self, group: AgentGroup, *, takes_all: bool, undone: str | None = None) -> None:
        """`takes_all`: also the names that survivors do not have alike; `undone`: the cell in which the ranks died.

        Raises:
            JupyterDistError: `ranks_differ`, if a single rank lives, and cannot be compared with another one.
        """
        self._group = group
        self._takes_all = takes_all
        self._undone = undone
        self._found = copies.Likeness([], [], [], {}, [])
        self._left: dict[int, LeftParts] = {}  # by dead rank
        self._filled: list[list[str]] = []  # the names that are divided, and whose parts the dead ranks have left
        self._ways: list[str] = []  # to the DTensors of these
        if len(living := group.living()) < 2 and not takes_all:
            message = (
                say("Only rank %1 is left: what ranks have alike cannot be told from what it has.", living[0].rank)
                if living
                else say("No rank is left: its variables cannot be copied.")
            )
            hint = say("Copy all of its variables with others='copy', or take a save with state='save'.")
            raise JupyterDistError("ranks_differ", message, hint)

    async def look(self, survivors: Sequence[RankProcess]) -> None:
        """Compare the survivors, and find what the dead have left. Raises JupyterDistError if one cannot answer."""
        self._found = await copies.compare(survivors, takes_several=True)
        dead = [rank for rank in self._group.ranks if rank.state == "dead"]
        self._left = {rank.rank: rank.left for rank in dead if rank.left is not None}
        divided = [*self._found.sharded, *(self._found.divided if self._takes_all else ())]
        if not divided or self._undone is None or len(self._left) < len(dead):
            return
        size = self._group.spec.world_size
        known = set.intersection(*(left.ways(self._undone, size) for left in self._left.values()))
        for names, ways in zip(divided, await copies.ways(survivors[0], divided), strict=True):
            if known.issuperset(ways):
                self._filled.append(names)
                self._ways += filter(None, ways)

    async def give(self, fresh: Sequence[RankProcess], survivors: Sequence[RankProcess]) -> Given:
        """Copy from the survivor with the lowest number. Raises JupyterDistError."""
        found, source = self._found, survivors[0]
        sharded = {key for keys in (*found.sharded, *found.divided) if keys not in self._filled for key in keys}
        keys = {*found.alike, *(found.differ if self._takes_all else ())} - sharded
        try:
            again = await copies.copy(source, fresh, copies.folder_of(self._group, "replaced"), keys)
            for rank in fresh if self._filled else ():
                await copies.fill(rank, self._filled, self._ways, self._left[rank.rank].paths)
        except OSError as err:
            raise JupyterDistError(
                "bad_directory", say("The copies cannot be written: %1.", err.strerror or err)
            ) from err
        now = time.time()
        for rank in fresh:
            rank.covered = [[0.0, now]]
        parts = _named(sharded, "is divided among the ranks, and lacks the part of the rank that died: load a save")
        if not self._takes_all:
            unknown = [name for name in found.differ if name not in found.why and name not in sharded]
            differ = _named(unknown, "differs between the other ranks, or cannot be compared: not copied")
            again = [*differ, *(f"{why}." for why in list(found.why.values())[: copies.MAX_NAMED]), *again]
        names = sorted(key for key in keys if key.isidentifier())
        copied = say("it has copies of %1 names of rank %2; the other ranks keep theirs.", len(names), source.rank)
        return Given(names, [*parts, *again], join(copied, *parts, *again))

    def close(self) -> None:
        """Do nothing."""


def _named(names: Sequence[str] | set[str], reason: str) -> list[str]:
    shown = ", ".join(sorted(name for name in names if name.isidentifier())[: copies.MAX_NAMED])
    return [f"{shown} {reason}."] if shown else []
