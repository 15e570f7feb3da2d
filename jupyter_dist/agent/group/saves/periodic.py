"""Saves a group by itself every so often, if cells have run since, and keeps the newest of these saves."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import TYPE_CHECKING, Protocol

from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.states import GroupState
from jupyter_dist.protocol.wire.specs import GroupSpec
from jupyter_dist.transport.tasks import start_task

from .automatic import automatic_save, drop_older
from .transfers import Transfers

if TYPE_CHECKING:
    from jupyter_dist.protocol.models import models


class SavingGroup(Protocol):
    """The parts of a group that its saves use."""

    spec: GroupSpec
    state: GroupState
    generation: int
    transfers: Transfers

    def add_note(self, text: str) -> None:
        """Show a note to users."""


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

    def __init__(self, group: SavingGroup) -> None:
        self._group = group
        self._clock = SaveClock(group.spec.save_every_seconds, time.monotonic())
        self._generation = group.generation
        self._execution: str | None = None  # the save under way
        self._work: asyncio.Task[None] | None = None

    def model(self) -> models.SelfSaving:
        """Return how often the group saves by itself, if at all."""
        spec = self._group.spec
        return {
            "every_seconds": spec.save_every_seconds,
            "kept": spec.saves_kept,
            "problem": self._clock.problem,
        }

    def look(self) -> None:
        """Queue a save if one is due. A group that is parked, or has lost a rank, is left alone."""
        if self._generation != self._group.generation:  # the variables went with the restart
            self._generation = self._group.generation
            self._clock.began(time.monotonic())
        if self._execution is None and self._group.state == "ready" and self._clock.is_due(time.monotonic()):
            self._execution = f"e-{uuid.uuid4().hex[:12]}"
            self._work = start_task(self._submit(self._execution), "save", self._failed)

    def changed(self, execution: AgentExecution) -> None:
        """Handle a new state of an execution of the group."""
        is_save = execution.spec.transfer is not None and execution.spec.transfer["action"] == "save"
        if is_save and execution.state == "running":
            self._clock.began(time.monotonic())
        if not execution.is_final:
            return
        if not is_save:
            if execution.begin_seq is not None:
                self._clock.ran()
        elif execution.state == "ok":  # also a save on request
            self._clock.ended(None)
        elif execution.id == self._execution and execution.state == "interrupted":
            self._clock.ran()  # the next one has these variables
        elif execution.id == self._execution:
            self._stop(execution.error.message if execution.error else f"It ended with '{execution.state}'.")
        if execution.id == self._execution:
            self._execution = None
            if execution.state == "ok":
                asyncio.get_running_loop().run_in_executor(None, drop_older, self._group.spec)

    # -- inside -----------------------------------------------------------------------------------------

    async def _submit(self, execution_id: str) -> None:
        group, spec = self._group, self._group.spec
        execution, name = automatic_save(spec, execution_id, spec.save_seconds)
        try:
            await group.transfers.submit(execution, f"# save of {name}".encode())
        except JupyterDistError as err:
            self._execution = None
            self._stop(str(err))

    def _failed(self, error: BaseException) -> None:
        self._execution = None
        self._stop(f"{error!r:.300}")

    def _stop(self, reason: str) -> None:
        """Name the reason once, and make no more saves until one succeeds: they would fail again and again."""
        self._clock.ended(reason)
        hint = "It saves by itself again after a save that succeeds (group.save())."
        self._group.add_note(f"The group did not save by itself: {reason} {hint}")
