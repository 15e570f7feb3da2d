"""Saves a group before its allocation ends: running cells are interrupted, and the save has a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from jupyter_dist.agent.group.cells.dispatch import Dispatcher
from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.processes import records
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.parts.saves.transfer import SavesOptions
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.states import AWAY_GROUP_STATES

from .automatic import AutomaticSave, SavingGroup
from .transfers import NOTHING_SAVED, Transfers, action_of

if TYPE_CHECKING:
    from jupyter_dist.parts.saves.models import SelfSaving

RESERVE_SECONDS = 5.0  # before the end: what is not complete then may be cut off anywhere
RESERVE_SHARE = 0.1  # of the time for a save, if that is short
MOVED_SECONDS = 5.0  # an end that moves by less is the same: engines round
SAVEABLE_STATES = {"ready", "degraded", *AWAY_GROUP_STATES}  # the save brings tensors back that are away


class EndingGroup(SavingGroup, Protocol):
    """The parts of a group that are used before its end."""

    dispatcher: Dispatcher
    ranks: list[RankProcess]

    def let_nodes_end(self) -> None:
        """Have nodes that were asked to end do so now."""


class EndClock:
    """When a group is to be saved before its allocation ends: once for each end. Pure."""

    def __init__(self, before_seconds: float) -> None:
        self._before_seconds = before_seconds
        self._reserve_seconds = min(RESERVE_SECONDS, RESERVE_SHARE * before_seconds)
        self.ends_at: float | None = None
        self._handled: float | None = None  # the end before which it was saved already

    @property
    def deadline(self) -> float:
        """Return when a save must be complete."""
        assert self.ends_at is not None
        return self.ends_at - self._reserve_seconds

    def ends_in(self, seconds: float, now: float) -> None:
        """Take an end that comes so soon that a save is due at once, also if one was made before: cells ran since."""
        self._handled = None
        self.ends_at, self._before_seconds = now + seconds, max(self._before_seconds, seconds)
        self._reserve_seconds = min(RESERVE_SECONDS, RESERVE_SHARE * seconds)

    def is_due(self, now: float) -> bool:
        """Whether a save is to begin now."""
        if self._before_seconds <= 0 or self.ends_at is None or now >= self.deadline:
            return False
        is_handled = self._handled is not None and abs(self.ends_at - self._handled) <= MOVED_SECONDS
        return not is_handled and now >= self.ends_at - self._before_seconds

    def began(self) -> None:
        """Handle a save that begins."""
        self._handled = self.ends_at


class SaveBeforeEnd:
    """The last save of one group. It comes before queued cells, and running cells are interrupted for it."""

    def __init__(
        self,
        group: EndingGroup,
        options: SavesOptions,
        transfers: Transfers,
        interrupt: Callable[[list[RankProcess]], object],
    ) -> None:
        self._group = group
        self._before_seconds = options.save_before_end_seconds
        self._interrupt = interrupt
        self._clock = EndClock(options.save_before_end_seconds)
        self._save = AutomaticSave(group, options, transfers, self._ended)
        self._until = ""  # when the allocation ends, for sentences
        self._is_last = False  # the engine has asked the nodes to end
        self._timer: asyncio.TimerHandle | None = None

    def add_to(self, model: SelfSaving) -> None:
        """Add when the group is saved before its end, if it is."""
        if self._before_seconds > 0:
            model["before_end_seconds"] = self._before_seconds
            model["ends_at"] = self._clock.ends_at

    def ends(self, at: float | None) -> None:
        """Take the end of the allocation as the server knows it, in seconds since 1970; None: it has no limit."""
        if not self._is_last:
            self._clock.ends_at = at
            self._follow_end()

    def asked_to_end(self) -> bool:
        """Save the group now: its engine asks a node to end, which keeps running for a grace, or until then.

        Returns:
            Whether a save is under way: none is where the group could not be saved now, or just was.
        """
        if not self._is_last:  # else another node has reported it before
            self._is_last = True
            if self._before_seconds > 0:
                self._clock.ends_in(self._group.spec.end_grace_seconds, time.time())
                self._follow_end()
        return self._save.is_under_way

    def look(self) -> None:
        """Begin a save if one is due."""
        is_due = not self._save.is_under_way and self._clock.is_due(time.time())
        if is_due and self._group.state in SAVEABLE_STATES:
            self._clock.began()
            self._set_timer()
            self._save.begin(self._make_way)

    def changed(self, execution: AgentExecution) -> None:
        """Handle a new state of an execution of the group."""
        self._save.changed(execution)

    def give_up(self) -> None:
        """Let nodes end that wait for a save: none is made any more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._is_last:
            self._group.let_nodes_end()

    # -- inside -----------------------------------------------------------------------------------------

    def _follow_end(self) -> None:
        if self._save.is_under_way and self._clock.ends_at is not None:
            self._clock.began()  # the save under way is for this end, too
            self._set_timer()
        self.look()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        seconds = max(0.0, self._clock.deadline - time.time())
        self._timer = asyncio.get_running_loop().call_later(seconds, self._too_late)
        self._until = time.strftime("%H:%M", time.localtime(self._clock.ends_at))

    def _make_way(self) -> None:
        """Interrupt running cells, and end queued ones, with the reason; saves and restores are not interrupted."""
        queue, why = (
            self._group.dispatcher.queue,
            say("the allocation ends at %1, and the group is saved before", self._until),
        )
        queued = [cell for cell in queue.in_state("queued") if not action_of(cell)]
        hint = say("Restore the save in a new group, and run the cell there.")
        self._group.dispatcher.abort(queued, "aborted", JupyterDistError("aborted", say("Not run: %1.", why), hint))
        ranks = self._busy_ranks()
        named = set()
        for rank in ranks:
            if rank.execution_id not in named:  # once in a cell
                named.add(rank.execution_id)
                records.write(rank, f"Interrupted: {why}.")
        if ranks:
            self._interrupt(ranks)

    def _busy_ranks(self) -> list[RankProcess]:
        running = self._group.dispatcher.queue.in_state("running")
        cells = {cell.id for cell in running if not action_of(cell)}
        return [rank for rank in self._group.ranks if rank.execution_id in cells]

    def _too_late(self) -> None:
        """Drop the save, and name what has kept it."""
        busy = self._busy_ranks()
        reason = f"It was not complete in time: the allocation ends at {self._until}."
        if busy:
            cell = self._group.dispatcher.queue.get(busy[0].execution_id or "")
            where = ", ".join(str(rank.rank) for rank in busy[:8])
            count = f"[{cell.execution_count}] " if cell.execution_count else ""
            reason = f"The cell {count}'{cell.line}' could not be interrupted on rank {where}."
        self._save.end(reason)

    def _ended(self, _: str, reason: str | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if reason is None:
            note = f"The group was saved as '{self._save.name}': its allocation ends at {self._until}."
        else:
            reason = reason.removeprefix(NOTHING_SAVED)
            failed = f"The group was not saved before its allocation ends at {self._until}:"
            note = f"{failed} {reason} Earlier saves remain."
        self._group.add_note(note, until=None if reason is None else "save")
        if self._is_last:
            self._group.let_nodes_end()
