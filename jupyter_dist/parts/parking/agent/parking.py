"""Parks a group and resumes it: the only place where its states parking, parked and resuming are decided.

Parking: the ranks leave their process groups, and where the driver can, its checkpoint takes the devices' memory
(driver.py). Where it cannot, or tensors go into files, ranks move the tensors first. Resuming: the same
backwards, and the ranks join again, under the same objects. After an error the ranks are resumed; if that fails, too,
the group stays parked, and loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.group.rejoin import give_up_waiting_for, rejoin
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.protocol.parts import failure_of
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.states import AWAY_GROUP_STATES, HOW_TO_BE_READY
from jupyter_dist.transport.frames import Header
from jupyter_dist.transport.tasks import start_task

from .driver import DriverCheckpoint, why_not_for
from .idle import IdleClock
from .room import Need, check_folder, check_hosts

if TYPE_CHECKING:
    from jupyter_dist.parts.parking.models import ParkedState

log = logging.getLogger(__name__)

LOOK_SECONDS = 20.0
LEAST_SECONDS = 60.0
BYTES_PER_SECOND = 32 << 20  # a slow network disk
MIB = 1 << 20


@dataclass(frozen=True)
class ParkingPlan:
    """How a group is parked."""

    to: str  # ParkRequest.to
    folder: str | None  # of files
    moves: bool  # whether storages are moved
    by_driver: bool  # whether the driver's checkpoint takes what is left on the devices
    num_bytes: int  # of all ranks


class Parking:
    """Parks and resumes one group."""

    def __init__(self, group: AgentGroup, after_seconds: float) -> None:
        self.driver = DriverCheckpoint()
        self.parked: ParkedState | None = None  # where the group's memory is
        self._group = group
        self._clock = IdleClock(after_seconds)
        self._work: asyncio.Task[None] | None = None
        self._plan: ParkingPlan | None = None
        self._is_wanted = False  # whether it is to be resumed as soon as it is parked

    # -- requests -----------------------------------------------------------------------------------

    async def park(self, to: str = "host", folder: str | None = None) -> None:
        """Begin to park the group; it has the state `parking` then. Nothing is done if it is parked already.

        Raises:
            JupyterDistError: `group_not_ready`, if it is not idle, has nothing to give back, or there is no room.
        """
        if self._group.state in ("parking", "parked"):
            return
        self._check_idle()
        plan = await self._planned(to, folder)
        self._check_idle()  # ranks were asked meanwhile
        self._plan, self._is_wanted = plan, False
        self._group.process_group.close()
        self._group.has_left = True
        self._group.set_state("parking")
        self._begin(self._park(plan))

    def resume(self) -> None:
        """Begin to resume the group, at once or after it is parked. Nothing is done if it is not parked."""
        if self._group.state in AWAY_GROUP_STATES:
            self._group.dispatcher.hold_for(self._why_cells_wait())
        self._is_wanted = True
        if self._group.state == "parked":
            if self.parked is not None:
                self.parked = {**self.parked, "resuming_since": time.time()}
            self._group.set_state("resuming")
            self._begin(self._return(None))

    def used(self) -> None:
        """Begin to count the time without use again."""
        self._clock.used(time.monotonic())

    def look(self) -> None:
        """Park the group by itself, if it has been idle for long enough, with a notice before."""
        group = self._group
        runs_widgets = any(group.comms.calls_back(rank.rank) for rank in group.ranks)
        if group.state != "ready" or runs_widgets or group.dispatcher.queue.in_state("running", "queued"):
            self.used()
            return
        due = self._clock.due(time.monotonic())
        if due == "notice":
            seconds = self._clock.notice_seconds
            text = say("The group is idle: it is parked in %1 s, unless it is used.", f"{seconds:.0f}")
            self._group.add_note(text, until="cell")
        elif due == "park":
            self._begin(self._park_idle())

    def cancel(self) -> None:
        """End the work under way: the ranks end."""
        if self._work is not None:
            self._work.cancel()
        self._group.has_left, self.parked, self._plan = False, None, None

    # -- deciding -----------------------------------------------------------------------------------

    @property
    def _has_devices(self) -> bool:
        return ACCELERATORS[self._group.spec.accelerator].has_devices

    def _check_idle(self) -> None:
        group, why, name = self._group, None, self._group.spec.name
        if group.state != "ready":
            why, hint = say("Group '%1' is %2.", name, say(group.state)), HOW_TO_BE_READY[group.state]
        elif group.dispatcher.queue.in_state("running", "queued"):
            why, hint = say("Group '%1' runs a cell.", name), say("Interrupt the cell, or wait until it ends.")
        elif not group.process_group.may_begin or any(rank.state != "idle" for rank in group.ranks):
            why = say("Group '%1' is not idle: its ranks join, or do not respond.", name)
            hint = say("Try again.")
        elif any(rank.process_group == "lost" for rank in group.ranks):
            why, hint = say("Group '%1' has lost a device.", name), say("Replace its ranks.")
        elif any(group.comms.calls_back(rank.rank) for rank in group.ranks):
            why, hint = say("Group '%1' runs the code of a widget.", name), say("Wait until it ends.")
        if why is not None:
            raise JupyterDistError("group_not_ready", why, hint)

    async def _planned(self, to: str, folder: str | None) -> ParkingPlan:
        """Ask the ranks what there is to move, and decide how. Raises JupyterDistError `group_not_ready`."""
        group = self._group
        if to == "host" and not self._has_devices:
            message = say("Group '%1' holds no devices.", group.spec.name)
            raise JupyterDistError(
                "group_not_ready", message, say("To free host memory, park it into files: to='file'.")
            )
        looks = await asyncio.gather(*(rank.request("look_to_park", LOOK_SECONDS) for rank in group.ranks))
        for rank, look in zip(group.ranks, looks, strict=True):
            if look["active"] is not None:
                message = say("On rank %1 %2 of an earlier cell may still run code.", rank.rank, look["active"])
                raise JupyterDistError("group_not_ready", message, say("End it first: it would use tensors meanwhile."))
        no_driver = await self._why_no_driver()
        addresses = next((look["addresses"] for look in looks if look["addresses"] is not None), None)
        if addresses is not None and (no_driver is not None or to == "file"):
            message = say("Tensors cannot be moved: %1.", addresses)
            hint = (
                say("Park it in host memory.") if no_driver is None else say("The driver cannot do it: %1.", no_driver)
            )
            raise JupyterDistError("group_not_ready", message, hint)
        where = str(self._group.directory) if folder is None else folder
        num_bytes = self._check_room(to, Path(where), looks)
        # The driver alone is faster than both (docs/gpu.md), and takes more: contexts, and tensors that only C++ knows.
        moves = to == "file" or no_driver is not None
        return ParkingPlan(to, where if to == "file" else None, moves, no_driver is None, num_bytes)

    async def _why_no_driver(self) -> str | None:
        return why_not_for(self._group.spec) or await self.driver.why_not(self._pids())

    def _check_room(self, to: str, folder: Path, looks: Sequence[Header]) -> int:
        """Return the bytes to move."""
        sizes = [int(look["device_bytes"] or look["storage_bytes"]) for look in looks]
        if to == "host":
            available = [look["available_bytes"] for look in looks]
            check_hosts(map(Need, (rank.spec.node for rank in self._group.ranks), sizes, available))
        elif self._group.nodes is None:  # a rank of another machine reports it
            check_folder(folder, sum(int(look["storage_bytes"]) for look in looks))
        return sum(sizes)

    def _pids(self) -> list[int]:
        return [rank.local_pid for rank in self._group.living() if rank.local_pid is not None]

    def _why_cells_wait(self) -> str:
        if self._group.state == "parking":
            return say("Waits until the group is parked, and resumes it")
        return say("Resumes the group, which was parked")

    # -- in the background --------------------------------------------------------------------------

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = start_task(work, "park or resume", self._failed)

    def _failed(self, error: BaseException) -> None:
        """Handle an internal error: the group must not be shown as on its way forever."""
        if self._group.state in ("parking", "resuming"):
            self._stay_parked(f"the agent failed: {failure_of(error)}")
        else:
            self._group.add_note(say("The group was not parked: %1", f"{failure_of(error)}."), until="cell")

    async def _park_idle(self) -> None:
        try:
            await self.park("host" if self._has_devices else "file")
        except JupyterDistError as err:
            self._group.add_note(say("The group was not parked: %1", err.message), until="cell")

    async def _park(self, plan: ParkingPlan) -> None:
        group, began = self._group, time.monotonic()
        try:
            answers = await self._ask_all("park", plan.num_bytes, folder=plan.folder, moves=plan.moves)
            if plan.by_driver:
                await self.driver.park(self._pids(), plan.num_bytes)
            seconds = time.monotonic() - began
            self.parked = _parked(plan, answers, seconds)
        except JupyterDistError as err:
            await self._return(say("The group was not parked: %1", err.message))
            return
        except Exception as err:  # an internal error: the ranks may be parked, or half of them
            log.exception("Cannot park the group")
            await self._return(say("The group was not parked: %1", f"{failure_of(err)}."))
            return
        held = self.parked["held_bytes"] // MIB
        took = f"{seconds:.1f}"
        parked = (
            say("Parked in %1 s: %2 MiB are in host memory.", took, held)
            if plan.to == "host"
            else say("Parked in %1 s: %2 MiB are in files in %3.", took, held, plan.folder)
        )
        left = () if plan.by_driver else self.parked["left"]
        group.add_note(join(parked, *left, say("The next cell resumes the group.")))
        group.set_state("parked")
        if not group.living():
            group.set_state("dead")
        elif self._is_wanted:
            self.resume()

    async def _return(self, why: str | None) -> None:
        """Bring the tensors of the living ranks back, and have all ranks join again.

        Args:
            why: the sentence for users if the group could not be parked; None if it is resumed as wanted.
        """
        group, began = self._group, time.monotonic()
        plan = self._plan
        assert plan is not None
        try:
            if plan.by_driver:
                await self.driver.resume(self._pids(), plan.num_bytes)
            await self._ask_all("resume", plan.num_bytes, may_die=True)
        except JupyterDistError as err:
            self._stay_parked(join(why, err.message))
            return
        group.has_left = False
        note = await self._joined()
        if not group.living():  # the last one has died meanwhile
            return
        self._plan = self.parked = None
        seconds = time.monotonic() - began
        group.add_note(join(why or say("Resumed in %1 s.", f"{seconds:.1f}"), note), until=None if why else "cell")
        self.used()
        group.formed()

    async def _joined(self) -> str:
        """Have the ranks join again; return a sentence about the outcome."""
        group = self._group
        if dead := [rank for rank in group.ranks if rank.state == "dead"]:
            for rank in dead:
                give_up_waiting_for(rank, group.living(), group.stores)
            numbers = str(RankSet(rank.rank for rank in dead))
            return say("Rank %1 died meanwhile: replace it. The others keep all variables.", numbers)
        try:
            revived = await rejoin(group.ranks, group.stores.new())
        except JupyterDistError as err:
            kept = say("All variables are kept, but the process group could not be re-created (%1).", err.message)
            return join(kept, say("Re-create it with 'reform', or restart the group."))
        names = ", ".join(revived.left)
        left = say("Not re-created: %1; make them again on all ranks.", names) if names else None
        return join(say("All variables are kept."), left)

    async def _ask_all(self, kind: str, num_bytes: int, *, may_die: bool = False, **fields: Any) -> list[Header]:
        """Ask all living ranks at a time, and wait for all; then raise the first error."""
        seconds = LEAST_SECONDS + num_bytes / BYTES_PER_SECOND
        asked = self._group.living()
        outcomes = await asyncio.gather(
            *(rank.request(kind, seconds, **fields) for rank in asked), return_exceptions=True
        )
        for rank, outcome in zip(asked, outcomes, strict=True):
            if isinstance(outcome, BaseException) and not (may_die and rank.state == "dead"):
                raise _named(outcome, rank)
        return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]

    def _stay_parked(self, reason: str) -> None:
        """Keep the group parked after an error, and end the cells that would wait for it."""
        group = self._group
        if group.state == "dead":
            return
        if self.parked is None and self._plan is not None:
            self.parked = _parked(self._plan, [], 0.0)
        if self.parked is not None:
            self.parked = {**self.parked, "resuming_since": None}
        group.set_state("parked")
        message = say("The group could not be resumed: %1", reason)
        error = JupyterDistError("group_not_ready", message, say("Resume it again."))
        group.add_note(join(error.message, say("It stays parked.")))
        group.dispatcher.end_all(error)


def _named(error: BaseException, rank: RankProcess) -> BaseException:
    """Return an error that a rank has returned with its number, which a resize may have changed."""
    if not isinstance(error, JupyterDistError) or error.code != "group_not_ready":
        return error
    return JupyterDistError(error.code, say("Rank %1: %2", rank.rank, error.message), error.hint)


def _parked(plan: ParkingPlan, answers: Sequence[Header], seconds: float) -> ParkedState:
    held = sum(int(answer["held_bytes"]) for answer in answers)
    left = sum(int(answer["left_bytes"]) for answer in answers)
    sentences = list(dict.fromkeys(sentence for answer in answers for sentence in answer["left"]))
    if plan.by_driver:
        # The driver has moved the rest, too. Where no rank counts its device's memory, only the plan is known.
        counted = held + left
        held, left, sentences = (counted if counted > 0 else plan.num_bytes), 0, []
    by: list[Any] = [*(["storages"] if plan.moves else []), *(["driver"] if plan.by_driver else [])]
    return {
        "since": time.time(),
        "seconds": round(seconds, 3),
        "place": "file" if plan.to == "file" else "host",
        "by": by,
        "held_bytes": held,
        "left_bytes": left,
        "left": sentences,
        "resuming_since": None,
    }
