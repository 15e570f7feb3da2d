"""Sends cells to ranks, in the order of order.py, and handles replies and deaths."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

from jupyter_dist.agent.group.cellcode.definitions import Definitions
from jupyter_dist.agent.group.cellcode.needs import WORDS, find_need
from jupyter_dist.agent.group.process_group import ProcessGroup
from jupyter_dist.agent.processes import records
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say, say_n
from jupyter_dist.protocol.ranks import RankSet, parse_ranks
from jupyter_dist.protocol.states import ExecutionState
from jupyter_dist.protocol.wire import road
from jupyter_dist.transport.frames import Header, encode_frame

from .asking import not_asking
from .execution import AgentExecution
from .order import ExecutionQueue

log = logging.getLogger(__name__)


class Dispatcher:
    """Runs queued cells on the ranks it is given."""

    def __init__(
        self, journal: JournalWriter, process_group: ProcessGroup, on_change: Callable[[AgentExecution], None]
    ) -> None:
        self.queue = ExecutionQueue()
        self.asked_by_parts: Callable[[AgentExecution], dict[str, Any]] = lambda _: {}  # what ranks get with a cell
        self._definitions = Definitions()
        self._process_group = process_group
        self._ranks: dict[int, RankProcess] = {}
        self._journal = journal
        self._on_change = on_change
        self.on_submit: Callable[[], None] = lambda: None  # a cell was queued
        self._execution_count = 0
        self._nodes: Sequence[range] = ()
        self._held: dict[str, str | None] = {}  # cells that wait for a lost link, and the warning that they had before

    @property
    def execution_count(self) -> int:
        """Return the number of the last cell that began."""
        return self._execution_count

    def count_on(self, execution_count: int, cells: Sequence[str]) -> None:
        """Count on from the last of these cells, of which all ranks have the history and the definitions now."""
        self._execution_count = max(self._execution_count, execution_count)
        self._definitions.clear()
        for code in cells:
            self._definitions.note(code, self._ranks)

    def take_ranks(self, ranks: list[RankProcess], nodes: Sequence[range] = ()) -> None:
        """Dispatch to these ranks from now on; a new generation counts its cells from 1."""
        self.replace_ranks(ranks)
        self._nodes = nodes
        self._definitions.clear()
        self._execution_count = 0

    def replace_ranks(self, ranks: list[RankProcess]) -> None:
        """Take over ranks of the same generation, some of them new."""
        self._ranks = {rank.rank: rank for rank in ranks}

    def take_shape(self, ranks: list[RankProcess], nodes: Sequence[range]) -> None:
        """Dispatch to these ranks from now on: queued cells are for the ranks that their expressions name now."""
        self.replace_ranks(ranks)
        self._nodes = nodes
        for execution in self.queue.in_state("queued"):
            try:
                self._choose_ranks(execution)
            except JupyterDistError as err:
                self.abort([execution], "aborted", err)
            else:
                self._on_change(execution)

    def _choose_ranks(self, execution: AgentExecution) -> None:
        """Read the rank expression of a cell again: the group may have been resized since its client did."""
        if execution.spec.expression is not None:
            execution.move(parse_ranks(execution.spec.expression, len(self._ranks), self._nodes))

    def submit(self, execution: AgentExecution) -> AgentExecution:
        """Queue a cell, and start it at once if nothing is queued before it.

        Raises:
            JupyterDistError: `rank_dead`, if it is for a rank that is gone; `bad_ranks`, if a resize has just removed
                one; `key_reused`, if another cell has its id; `needs_all_ranks`, if it calls what all ranks must call,
                and its client asks first.
        """
        if (known := self.queue.find(execution.id)) is not None:
            _check_same(known, execution)  # a retry: the first answer was lost
            return known
        self._choose_ranks(execution)
        # While the group restarts, the ranks that die now are not the ranks that will run it.
        if self._process_group.is_formed and (dead := self._dead_ranks(execution)):
            raise dead_error(dead)
        self._check_need(execution)
        self._note_definitions(execution)
        self.queue.add(execution)
        if (before := self.queue.forbids(execution)) is not None:
            self.abort([execution], "aborted", _not_run_error(before))
            return execution
        self._on_change(execution)
        self.pump()
        self.on_submit()
        return execution

    def _note_definitions(self, execution: AgentExecution) -> None:
        if execution.spec.call is None:
            self._definitions.note((execution.code or b"").decode("utf-8", "replace"), execution.spec.ranks)

    def _check_need(self, execution: AgentExecution) -> None:
        """Warn of a cell for some ranks that calls what all ranks must call; refuse it if its client asks first."""
        spec = execution.spec
        if spec.call is not None or spec.silent or not 0 < len(spec.ranks) < len(self._ranks):
            return
        kinds = {name: kind for rank in spec.ranks for name, kind in self._ranks[rank].kinds.items()}
        code = (execution.code or b"").decode("utf-8", "replace")
        earlier = self._definitions.about(WORDS.union(kinds), spec.ranks)
        need = find_need(code, kinds, earlier, len(self._ranks))
        if need is None:
            return
        message = say_n(
            "%2 needs all %3 ranks, %1 is chosen.",
            "%2 needs all %3 ranks, %1 are chosen.",
            len(spec.ranks),
            need,
            len(self._ranks),
        )
        if spec.ask_first:
            raise JupyterDistError("needs_all_ranks", message, say("Run it on all ranks, or without `ask_first`."))
        execution.warning = message

    def pump(self) -> None:
        """Start every queued cell that can run now, and end the cells that never can, because their ranks are dead."""
        if not self._process_group.is_formed or not self.queue.in_state("queued"):
            return  # each rank's reply comes here
        if self._process_group.may_begin:
            self._start_cells()
        for execution in self.queue.name_waits(is_held=not self._process_group.may_begin):
            self._on_change(execution)

    def hold_for(self, reason: str) -> None:
        """Show this reason at all queued cells, until the next `pump` finds the cells that they wait for."""
        for execution in self.queue.in_state("queued"):
            if execution.waits_for != reason:
                execution.waits_for = reason
                self._on_change(execution)

    def _start_cells(self) -> None:
        for execution in self.queue.in_state("queued"):
            if execution.state == "queued" and (dead := self._dead_ranks(execution)):
                self._end(execution, "aborted", dead_error(dead))
        again = True
        while again:  # a cell that could not begin has ended: cells that waited for it may begin
            again = False
            for execution in self.queue.startable():
                again |= not self._begin_if_reachable(execution)

    def _begin_if_reachable(self, execution: AgentExecution) -> bool:
        """Start a cell, or hold it until its ranks can be reached; return False if it has ended instead."""
        if execution.state != "queued":
            return True  # it was behind a cell that could not begin
        if (reason := self._unreachable(execution)) is not None:
            self._hold(execution, reason)
            return True
        execution.warning = self._held.pop(execution.id, execution.warning)
        return self._begin(execution)

    def _unreachable(self, execution: AgentExecution) -> str | None:
        """Return why a rank of the cell cannot be reached now; None if all can."""
        return next((reason for rank in execution.spec.ranks if (reason := self._ranks[rank].unreachable)), None)

    def _hold(self, execution: AgentExecution, reason: str) -> None:
        """Keep a cell queued, with a warning, until the link is back or its ranks are known to be dead."""
        if execution.id not in self._held:
            self._held[execution.id] = execution.warning
            execution.warning = f"{reason} The cell starts when it is back."
            self._on_change(execution)

    def ranks_replied(self, ranks: Sequence[RankProcess], reply: Header, seconds: Sequence[float | None]) -> None:
        """Record the end of the parts of these ranks."""
        execution = self.queue.find(reply["execution_id"])
        if execution is None or execution.is_final:
            self.pump()  # the ranks are idle all the same
            return
        for rank in ranks:
            if rank.cell_memory is not None:
                execution.rank_memory(rank.rank, rank.cell_memory)
        if reply["status"] != "ok" and execution.spec.call is not None:
            execution.refusal = execution.refusal or str(reply.get("evalue") or "A rank could not do it.")
        self._ranks_ended(execution, [rank.rank for rank in ranks], reply["status"], seconds)

    def rank_died(self, rank: RankProcess) -> None:
        """Handle the death of a rank: its part of the running cell is lost, the other ranks continue."""
        for execution in self.queue.in_state("running"):
            if execution.id == rank.execution_id:
                execution.error = JupyterDistError(
                    "rank_dead",
                    say("Rank %1 %2.", rank.rank, rank.exit["reason"] if rank.exit else say("died")),
                    say("Run on the other ranks, replace the dead ones, or restart the group."),
                )
                self._ranks_ended(execution, [rank.rank], "lost", [None])

    def rank_sent(self, rank: RankProcess, header: Header, content: dict[str, Any]) -> None:
        """Handle a message of a rank's code: one branch per kind of road.FROM_RANK."""
        execution = self.queue.find(header["execution_id"])
        if execution is None or execution.asking is None or rank.execution_id != execution.id:
            return  # its cell has ended meanwhile
        if header["kind"] == "input":
            question = road.InputQuestion(prompt=content["prompt"], password=content["password"])
            execution.asking.add(rank.rank, header["number"], question)
        else:
            execution.asking.drop(rank.rank)
        rank.awaits_user(rank.rank in execution.asking)
        self._on_change(execution)

    def answer(self, execution: AgentExecution, ranks: list[int] | None, seq: int | None, payload: bytes) -> list[int]:
        """Send the answer to the ranks that ask; return these ranks.

        Raises:
            JupyterDistError: `not_asking`, `rank_dead`; `bad_request`, if it is not clear for which ranks it is.
        """
        if execution.asking is None:
            ended = f"The cell is '{execution.state}'." if execution.state != "running" else "The cell runs without."
            raise not_asking(ranks or execution.spec.ranks, ended)
        if ranks is not None and (dead := [self._ranks[r] for r in ranks if self._ranks[r].state == "dead"]):
            raise dead_error(dead)
        answered = execution.asking.take(ranks, seq)
        for rank, asked in answered.items():
            self._ranks[rank].send({"t": "to_rank", "kind": "input", "number": asked.number}, payload)
            self._ranks[rank].awaits_user(False)
        self._on_change(execution)
        return sorted(answered)

    def running_calls(self) -> list[dict[str, Any]]:
        """Return the calls that ranks carry out now (requests.RankCall)."""
        calls = (execution.spec.call for execution in self.queue.in_state("running"))
        return [call for call in calls if call is not None]

    def end_all(self, error: JupyterDistError) -> None:
        """End running and queued cells with this reason."""
        self.abort(self.queue.in_state("queued"), "aborted", error)
        self.abort(self.queue.in_state("running"), "lost", error)

    def abort(self, executions: list[AgentExecution], state: ExecutionState, error: JupyterDistError) -> None:
        """End executions that cannot continue, with the reason."""
        for execution in executions:
            self._finish(execution, state, error)

    def cancel(self, execution: AgentExecution) -> list[RankProcess]:
        """Abort a queued execution; return the ranks to interrupt for a running one."""
        if execution.state == "queued":
            self.abort([execution], "aborted", JupyterDistError("cancelled", say("Cancelled before it ran.")))
            self.pump()
            return []
        return [rank for rank in self._ranks.values() if rank.execution_id == execution.id]

    def count_no_more(self, execution: AgentExecution, at: float | None) -> None:
        """Note when a cell was taken back; with None, the cell counts again."""
        execution.undone_at = at
        kind = "redone" if at is None else "undone"
        self._journal.append(kind, execution_id=execution.id, ranks=str(execution.spec.ranks))
        self._on_change(execution)

    def extend(self, execution: AgentExecution, ranks: list[int], code: bytes) -> None:
        """Extend a running cell to more ranks, which it waits for. Ranks that have the cell already are skipped.

        Raises:
            JupyterDistError: `rank_dead`, or `group_not_ready` if the cell or a rank is not in the state for that.
        """
        missing = RankSet(ranks) - execution.spec.ranks
        if not missing:
            return
        self._check_may_extend(execution, missing)
        self._record_begin(execution, missing, code, extends=True)
        execution.extend(missing)
        try:
            self._send(execution, missing, code)
        except Exception as err:  # the running cell must not wait for ranks that do not have it
            self._not_sent(execution, err)

    def _check_may_extend(self, execution: AgentExecution, ranks: RankSet) -> None:
        if execution.state != "running":
            hint = say("Run it again on all ranks.")
            raise JupyterDistError("group_not_ready", say("The cell does not run any more."), hint)
        if execution.spec.call is not None:
            message = say("It is a call of a client, which prepared it for its ranks only.")
            raise JupyterDistError("bad_ranks", message, say("Interrupt it, and call on all ranks."))
        if dead := [self._ranks[rank] for rank in ranks if self._ranks[rank].state == "dead"]:
            raise dead_error(dead)
        busy = RankSet(rank for rank in ranks if self._ranks[rank].state != "idle")
        if busy or not self._process_group.may_begin:
            why = say("Not idle: %1.", busy) if busy else say("The process group has to be re-created first.")
            raise JupyterDistError("group_not_ready", why, say("Interrupt the cell, and run it again on all ranks."))

    def _record_begin(self, execution: AgentExecution, ranks: RankSet, code: bytes, **marks: bool) -> int:
        spec = execution.spec
        return self._journal.append(
            "begin",
            code,
            execution_id=execution.id,
            ranks=str(ranks),
            execution_count=execution.execution_count,
            num_ranks=execution.num_ranks,
            cell_id=spec.cell_id,
            notebook=spec.notebook,
            owner=spec.owner,
            silent=spec.silent,
            **marks,
        )

    def run_first(self, execution: AgentExecution) -> AgentExecution:
        """Start an execution on ranks that are idle, before all that are queued; the process group may be closed."""
        self.queue.add(execution)
        self._begin(execution)
        return execution

    def _begin(self, execution: AgentExecution) -> bool:
        """Start a cell; return False if that failed and it has ended."""
        try:
            self._start(execution)
        except Exception as err:  # whatever it was: a cell that runs on no rank would keep all others waiting
            self._not_sent(execution, err)
        return not execution.is_final

    def _start(self, execution: AgentExecution) -> None:
        spec = execution.spec
        if not spec.silent:
            # The number of its client, such as the prompt of a kernel, is the number that its user sees.
            self._execution_count = execution.execution_count or self._execution_count + 1
        execution.start(self._execution_count)
        execution.num_ranks = len(self._ranks)
        code = execution.code or b""
        kept_seq = self._record_begin(execution, spec.ranks, code)
        # The record of a full disk is not kept: the last one is a lower bound then.
        execution.begin_seq = kept_seq or self._journal.last_seq
        if kept_seq:
            execution.code = None
        self._send(execution, spec.ranks, code)

    def _not_sent(self, execution: AgentExecution, why: Exception) -> None:
        """End a cell, or its part on those ranks that did not get it; the other ranks run it to its end."""
        log.error("Cannot start the cell %s", execution.id, exc_info=why)
        reason = (why.strerror if isinstance(why, OSError) else None) or f"{why!r:.200}"
        message = say("The cell could not be sent to its ranks: %1.", reason)
        execution.error = JupyterDistError(
            "internal", message, say("Run it again. See agent.log in the group's folder.")
        )
        self._end_forgotten(execution)

    def end_forgotten(self) -> None:
        """End running cells that no rank runs, and parts of ranks that do not run them: nothing else would."""
        for execution in self.queue.in_state("running"):
            if forgotten := self._forgotten(execution):
                log.error("The cell %s runs no longer on its ranks %s", execution.id, forgotten)
                message = say("Running, but not on ranks %1: how it ended there is unknown.", forgotten)
                execution.error = execution.error or JupyterDistError("internal", message, say("Run it again."))
                self._end_forgotten(execution)
                self.pump()

    def _forgotten(self, execution: AgentExecution) -> RankSet:
        return RankSet(rank for rank in execution.running_ranks if self._ranks[rank].execution_id != execution.id)

    def _end_forgotten(self, execution: AgentExecution) -> None:
        """End the parts of a cell on ranks that do not have it, and the cell if no rank has it."""
        forgotten = self._forgotten(execution)
        if execution.state == "queued" or execution.ranks_ended(forgotten, "lost", [None] * len(forgotten)):
            self._end(execution, "aborted" if execution.state == "queued" else None, execution.error)
        else:
            self._on_change(execution)

    def _send(self, execution: AgentExecution, ranks: RankSet, code: bytes) -> None:
        spec = execution.spec
        options: dict[str, Any] = {
            "silent": spec.silent,
            "empty_cache": spec.empty_cache,
            "allow_stdin": spec.allow_stdin,
        }
        if asked := self.asked_by_parts(execution):
            options["parts"] = asked
        count = execution.execution_count
        header = {"t": "execute", "execution_id": execution.id, "execution_count": count, **options}
        if spec.call is not None:
            header["t"], code = "call", json.dumps(spec.call).encode()
        frame = encode_frame(header, code)
        records.execute((self._ranks[rank] for rank in ranks), execution.id, frame)
        self._on_change(execution)

    def _ranks_ended(
        self, execution: AgentExecution, ranks: Sequence[int], status: Any, seconds: Sequence[float | None]
    ) -> None:
        if execution.ranks_ended(ranks, status, seconds):
            self._end(execution, None, None)
        else:
            self._on_change(execution)
        self.pump()  # the ranks are free for cells of other notebooks

    def _end(self, execution: AgentExecution, state: ExecutionState | None, error: JupyterDistError | None) -> None:
        """End a cell and, unless it ended well, those queued behind it; the caller pumps."""
        self._finish(execution, state, error)
        for stopped, before in self.queue.stopped_by(execution):
            self.abort([stopped], "aborted", _not_run_error(before))

    def _finish(self, execution: AgentExecution, state: ExecutionState | None, error: JupyterDistError | None) -> None:
        execution.finish(state, error)
        self._held.pop(execution.id, None)
        ranks = str(execution.spec.ranks)
        execution.end_seq = self._journal.append("end", execution_id=execution.id, state=execution.state, ranks=ranks)
        self._on_change(execution)

    def _dead_ranks(self, execution: AgentExecution) -> list[RankProcess]:
        ranks = (self._ranks[rank] for rank in execution.spec.ranks if rank in self._ranks)
        return [rank for rank in ranks if rank.state == "dead"]


def _check_same(known: AgentExecution, again: AgentExecution) -> None:
    if known.fingerprint != again.fingerprint:
        message = say("This idempotency key was used for another cell.")
        raise JupyterDistError("key_reused", message, say("Choose a new key for every cell."))


def _not_run_error(before: AgentExecution) -> JupyterDistError:
    if before.refusal and (code := (before.spec.call or {}).get("refused")):
        return JupyterDistError(code, before.refusal)
    cell = say("cell [%1]", before.execution_count) if before.execution_count else say("the cell")
    return JupyterDistError("aborted", say("Not run: %1 before it ended with '%2'.", cell, say(before.state)))


def dead_error(dead: list[RankProcess]) -> JupyterDistError:
    """Return the error for what needs dead ranks."""
    first = dead[0]
    reason = first.exit["reason"] if first.exit else say("is gone")
    without = str(RankSet(rank.rank for rank in dead)).replace(",", ",!")
    others = RankSet(rank.rank for rank in dead[1:])
    return JupyterDistError(
        "rank_dead",
        say("Rank %1 (and ranks %2) %3.", first.rank, others, reason)
        if others
        else say("Rank %1 %2.", first.rank, reason),
        say("Run on the other ranks (!%1), replace the dead ones, or restart the group.", without),
    )
