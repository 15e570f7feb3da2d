"""Saves a group by itself every so often, if cells have run since, and keeps the newest of these saves."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.parts.saves.transfer import SavesOptions

from .automatic import AutomaticSave, SavingGroup
from .transfers import Transfers, action_of

if TYPE_CHECKING:
    from jupyter_dist.parts.saves.models import SelfSaving


class SaveClock:
    """Counts the seconds since a group was last saved, and whether cells have run since. Pure."""

    def __init__(self, every_seconds: float, now: float) -> None:
        self._every_seconds = every_seconds
        self._saved_at = now
        self._has_run = False
        self.problem: str | None = None  # why the last save failed: no more are made until one succeeds

    def ran(self) -> None:
        """Handle a cell that has run."""
        self._has_run = True

    def began(self, now: float) -> None:
        """Handle a save that has begun; cells that end later are not in it."""
        self._saved_at, self._has_run = now, False

    def ended(self, problem: str | None) -> None:
        """Handle the end of a save: with a problem, or without."""
        self.problem = problem
        self._has_run = self._has_run or problem is not None

    def is_due(self, now: float) -> bool:
        """Whether a save is to begin now."""
        is_on = self._every_seconds > 0 and self.problem is None
        return is_on and self._has_run and now - self._saved_at >= self._every_seconds


class PeriodicSaves:
    """The saves that one group makes by itself. Each waits its turn in the queue, as a cell does."""

    def __init__(self, group: SavingGroup, options: SavesOptions, transfers: Transfers) -> None:
        self._group = group
        self._options = options
        self._clock = SaveClock(options.save_every_seconds, time.monotonic())
        self._generation = group.generation
        self._save = AutomaticSave(group, options, transfers, self._ended)

    def model(self) -> SelfSaving:
        """Return how often the group saves by itself, if at all."""
        return {
            "every_seconds": self._options.save_every_seconds,
            "kept": self._options.saves_kept,
            "problem": self._clock.problem,
        }

    def look(self) -> None:
        """Queue a save if one is due. A group that is parked, or has lost a rank, is left alone."""
        if self._generation != self._group.generation:  # the variables went with the restart
            self._generation = self._group.generation
            self._clock.began(time.monotonic())
        is_free = not self._save.is_under_way and self._group.state == "ready"
        if is_free and self._clock.is_due(time.monotonic()):
            self._save.begin()

    def changed(self, execution: AgentExecution) -> None:
        """Handle a new state of an execution of the group."""
        is_save = action_of(execution) == "save"
        if is_save and execution.state == "running":
            self._clock.began(time.monotonic())
        elif execution.is_final and not is_save and execution.begin_seq is not None:
            self._clock.ran()
        elif execution.is_final and is_save and execution.state == "ok":  # also a save on request
            self._clock.ended(None)
        self._save.changed(execution)

    # -- inside -----------------------------------------------------------------------------------------

    def _ended(self, state: str, reason: str | None) -> None:
        if state == "interrupted":
            self._clock.ran()  # the next one has these variables
        elif reason is not None:
            self._stop(reason)

    def _stop(self, reason: str) -> None:
        """Name the reason once, and make no more saves until one succeeds: they would fail again and again."""
        self._clock.ended(reason)
        hint = "It saves by itself again after a save that succeeds (group.save())."
        self._group.add_note(f"The group did not save by itself: {reason} {hint}", until="save")
