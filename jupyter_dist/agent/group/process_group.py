"""The agent's model of the process group: whether cells may start, and when it must be re-created.

A state machine without I/O: its methods take events and return actions for the group. The states and their transitions
are in protocol/states.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say, say_n
from jupyter_dist.protocol.ranks import RankSet, name_ranks
from jupyter_dist.protocol.states import PROCESS_GROUP_LIFE, ProcessGroupState
from jupyter_dist.transport.frames import Header


class Member(Protocol):
    """The facts about a running rank that decide, as of the rank's last cell."""

    @property
    def rank(self) -> int:
        """Return its number."""

    @property
    def collective_seq(self) -> int | None:
        """Return how many collectives it has begun."""

    @property
    def process_group(self) -> str:
        """Return ok, broken, none if user code destroyed it, or lost with the rank's device."""


@dataclass(frozen=True)
class Todo:
    """The actions for the group, in this order."""

    notes: tuple[str, ...] = ()  # notes for users, in the group and in its journal
    note: str | None = None  # shown in the group
    news: str | None = None  # like notes, about what is over: shown until the next cell has ended
    retry: bool = False  # call `again` later
    rejoin: bool = False  # make all ranks leave and join again, and report the result
    pump: bool = False  # start the cells that can start


class Revived(NamedTuple):
    """What was re-created with the default process group, under the same objects."""

    num_subgroups: int
    left: tuple[str, ...]  # names of process groups that differ between ranks
    lacking: tuple[str, ...] = ()  # process groups of which members have left the group


class ProcessGroup:
    """Decides, as the only place, whether cells may start."""

    def __init__(self) -> None:
        self.state: ProcessGroupState = "closed"
        self._broken = False
        self._interrupted = False  # a cell was interrupted, and may have left a collective half done
        self._left: list[int] = []  # ranks that had destroyed it at the last note
        self._was_not_recreated = False  # ranks that have none did not destroy it; it is tried again
        self._why_not = ""  # the reason in the last note
        self._after_failure = False  # it is re-created as a cell broke it, or was interrupted in a collective

    @property
    def may_begin(self) -> bool:
        """Whether cells may start."""
        return self.state == "open"

    @property
    def is_formed(self) -> bool:
        """Whether the current ranks will run the queued cells."""
        return self.state in ("open", "held")

    def close(self) -> None:
        """Handle ranks that start, restart, are replaced or end: no cell starts until `formed`."""
        self._enter("closed")

    def formed(self) -> Todo:
        """Handle the join of the last running rank."""
        self._broken = self._interrupted = self._after_failure = False
        self._left, self._was_not_recreated = [], False
        self._enter("open")
        return Todo(pump=True)

    def replied(self, reply: Header, idle: Iterable[Member]) -> None:
        """Handle a rank that finished its part of a cell: check whether that may have broken the process group.

        Args:
            reply: the rank's reply.
            idle: the ranks that run no cell now; read after an interrupt only. Counts of others are of earlier cells.
        """
        if not self.is_formed or self._was_not_recreated:
            return
        self._broken = self._broken or reply.get("process_group") in ("broken", "lost")
        self._interrupted = self._interrupted or reply["status"] == "interrupted"
        # Decided before a queued cell starts: it would hang in its first collective.
        if self._broken or (self._interrupted and _is_uneven(idle)):
            self._enter("held")

    def settle(self, living: Sequence[Member], world_size: int, is_running: bool) -> Todo:
        """Handle the end of a cell or a rank: once no cell runs, continue, or re-create a broken process group."""
        if is_running or not self.is_formed:
            return Todo()
        is_needed = self._broken or (self._interrupted and _is_uneven(living))
        self._broken = self._interrupted = False
        notes = self._who_left(living)
        lost = [member.rank for member in living if member.process_group == "lost"]
        if is_needed and len(living) == world_size and not lost:
            self._after_failure = True
            self._enter("rejoining")
            return Todo(notes, rejoin=True)
        self._enter("open")
        note = say("A rank is dead, and collectives fail until it is replaced or the group is restarted.")
        if lost:
            note = (
                say("Ranks %1 lost the device. Collectives fail until they are replaced.", RankSet(lost))
                if len(lost) > 1
                else say("Rank %1 lost the device. Collectives fail until it is replaced.", RankSet(lost))
            )
        return Todo(notes, note if is_needed else None, pump=True)

    def requested(self, is_running: bool) -> Todo:
        """Re-create the process group even if it is not broken, or after user code destroyed it.

        Raises:
            JupyterDistError: `group_not_ready`, while ranks are missing or running cells.
        """
        if is_running:
            message = say("A cell is running; ranks can only join when they are idle.")
            raise JupyterDistError("group_not_ready", message, say("Interrupt the cell or wait until it ends."))
        if not self.is_formed:
            raise JupyterDistError(
                "group_not_ready", say("The ranks are joining already."), say("Wait until they are ready.")
            )
        self._enter("rejoining")
        return Todo(rejoin=True)

    def rejoined(self, revived: Revived) -> Todo:
        """Handle the end of a successful re-creation: all ranks have joined again."""
        # What a cell was computing may be half done: gradients of some layers, or the result of an aborted collective.
        text: str = (
            say("The process group was re-created; all variables are kept as the cell left them.")
            if self._after_failure
            else say("The process group was re-created; all variables are kept.")
        )
        text = join(text, *_subgroups(revived))
        self._after_failure = False
        return Todo(news=text, pump=True) if self._continues() else Todo()

    def not_rejoined(self, reason: str, is_whole: bool) -> Todo:
        """Handle a failed re-creation: cells continue without collectives, and it is tried again."""
        before = self._why_not
        if not self._continues():
            return Todo()
        self._was_not_recreated, self._why_not = True, reason
        hint = (
            say("It is tried again; you can also call 'reform', or restart the group.")
            if is_whole
            else say("Replace the dead rank.")
        )
        why = say("The process group is broken and could not be re-created (%1).", reason.rstrip("."))
        note = join(why, hint)
        return Todo((note,) if reason != before else (), pump=True, retry=is_whole)

    def again(self, is_running: bool) -> Todo:
        """Try again what has failed, unless there is a process group now; later, while a cell runs."""
        if self.state != "open" or not self._was_not_recreated:
            return Todo()
        if is_running:
            return Todo(retry=True)
        self._enter("rejoining")
        return Todo(rejoin=True)

    def _continues(self) -> bool:
        """Let cells start again; return False if the ranks were restarted or ended meanwhile, and will run none."""
        if self.state != "rejoining":
            return False
        self._left, self._was_not_recreated, self._why_not = [], False, ""
        self._enter("open")
        return True

    def _who_left(self, living: Sequence[Member]) -> tuple[str, ...]:
        left = [member.rank for member in living if member.process_group == "none"]
        if all(member.process_group == "ok" for member in living):  # code of cells has created one
            self._was_not_recreated = False
        before, self._left = self._left, left
        if left and left != before:
            who = name_ranks(left, begins=True)
            if self._was_not_recreated:
                gone = say("%1: the process group is gone, because it could not be re-created.", who)
                return (join(gone, say("Re-create it with 'reform', or restart the group.")),)
            hint = say(
                "Run %1 in a cell on all ranks, or re-create it with 'reform'; all variables are kept.",
                "torch.distributed.init_process_group()",
            )
            return (join(say("%1 destroyed the process group: collectives fail.", who), hint),)
        return (say("All ranks are in the process group again."),) if before and not left else ()

    def _enter(self, state: ProcessGroupState) -> None:
        PROCESS_GROUP_LIFE.check(self.state, state)
        self.state = state


def _is_uneven(members: Iterable[Member]) -> bool:
    """Whether they began different numbers of collectives: they would mismatch the next one, or wait forever."""
    return len({member.collective_seq for member in members}) > 1


def _subgroups(revived: Revived) -> Iterator[str]:
    """Yield further sentences for users, about the subgroups."""
    if number := revived.num_subgroups:
        yield say_n(
            "So were its %1 subgroup: models, meshes and optimizers that use them continue.",
            "So were its %1 subgroups: models, meshes and optimizers that use them continue.",
            number,
        )
    if revived.left:
        names = ", ".join(revived.left)
        yield say("Not re-created, because ranks do not know them alike: %1. Create them again on all ranks.", names)
