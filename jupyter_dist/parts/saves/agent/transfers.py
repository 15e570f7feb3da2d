"""The saves and restores of a group: begins them, follows their ranks, and decides whether they count."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from jupyter_dist.agent.group.cells.dispatch import dead_error
from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.part import AgentCore
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.parts.saves.transfer import TransferDecision, TransferNews, TransferSpec
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.protocol.wire.specs import ExecutionSpec
from jupyter_dist.transport.tasks import start_task

from .jobs import Job, Reports, RestoreJob, SaveJob, begin_restore, begin_save
from .transaction import Transaction

if TYPE_CHECKING:
    from jupyter_dist.parts.saves.models import Transfer

log = logging.getLogger(__name__)

NOTHING_SAVED = "Nothing was saved: "
SEE_LATER = "See later whether the save exists."


@dataclass
class OpenTransfer:
    """A save or a restore that has not ended."""

    execution: AgentExecution
    job: Job
    transaction: Transaction
    timer: asyncio.TimerHandle | None = None
    deciding: asyncio.Task[None] | None = None
    exists: bool = False  # of a save: whether its files must stay


class Transfers:
    """Each is an execution on all ranks, so that it waits in the queue, and keeps cells waiting, as a cell does."""

    def __init__(self, core: AgentCore) -> None:
        self._core = core
        self._group = core.group
        self._dispatcher = core.group.dispatcher
        self._open: dict[str, OpenTransfer] = {}

    async def submit(self, spec: ExecutionSpec, code: bytes, transfer: TransferSpec) -> AgentExecution:
        """Queue a save or a restore.

        Raises:
            JupyterDistError: as `Dispatcher.submit`; `bad_directory`, `not_yours`, `name_taken`, `not_found`,
                `damaged`, `cannot_restore`, `other_version`.
        """
        if (known := self._dispatcher.queue.find(spec.execution_id)) is not None:
            return known  # a retry: the first answer was lost
        if dead := [rank for rank in self._group.ranks if rank.state == "dead"]:
            raise dead_error(dead)
        job = await asyncio.to_thread(self._begin, transfer, spec.execution_id)
        try:
            execution = AgentExecution(replace(spec, call=job.call), code)
            execution.title = f"the {transfer.action} of '{transfer.name}'"
            self._open[execution.id] = OpenTransfer(execution, job, Transaction(spec.ranks))
            self._dispatcher.submit(execution)
        except BaseException:
            self._open.pop(spec.execution_id, None)
            await asyncio.to_thread(job.drop)
            raise
        self.changed(execution)  # it may have begun, or ended, before it was known here
        return execution

    def _begin(self, transfer: TransferSpec, execution_id: str) -> Job:
        if transfer.action == "save":
            return begin_save(transfer, self._group.spec, execution_id)
        return begin_restore(transfer, self._group.spec, python_version(self._group.ranks))

    def changed(self, execution: AgentExecution) -> None:
        """Handle a new state of an execution, or of a rank's part of it."""
        if (found := self._open.get(execution.id)) is not None:
            self._surely(found, lambda: self._follow(found))

    def _follow(self, found: OpenTransfer) -> None:
        execution = found.execution
        if execution.is_final:
            self._ended(found)
        elif execution.state == "running":
            if found.timer is None:
                self._begun(found)
            ended = [rank for rank, (status, _) in execution.statuses.items() if status not in ("queued", "running")]
            if ended and found.transaction.phase in ("open", "deciding"):
                self._drop(found, self._why_ended(found, ended[0]))

    def rank_sent(self, rank: RankProcess, news: TransferNews) -> None:
        """Handle the progress of a rank, or that it is prepared."""
        if (found := self._open.get(rank.execution_id or "")) is not None:
            self._surely(found, lambda: self._take(found, rank, news))

    def cannot_read(self, rank: RankProcess) -> None:
        """Handle a message of a rank that is no news: it is not waited for in vain."""
        if (found := self._open.get(rank.execution_id or "")) is not None:
            self._drop(found, f"The messages of rank {rank.rank} cannot be read.")

    def _take(self, found: OpenTransfer, rank: RankProcess, news: TransferNews) -> None:
        all_prepared = found.transaction.take(rank.rank, news)
        self._show(found)
        if found.transaction.phase == "dropped" and news["state"] == "prepared":
            self._send_decision(found, [rank.rank])
        elif found.job.exceeds(found.transaction.written_bytes):
            limit = found.job.spec.max_bytes / 1e9
            self._drop(found, f"The folder may have {limit:.1f} GB (DistApp.saves_bytes). Delete saves first.")
        elif all_prepared:
            found.deciding = start_task(self._decide(found), "decide", lambda err: self._failed_in(found, err))

    def interrupt(self, ranks: Sequence[RankProcess]) -> list[RankProcess]:
        """Drop the transfers of these ranks on request of a user; return the ranks that are to be interrupted.

        The others have prepared their part: they get the decision. What is decided is not interrupted.
        """
        left: list[RankProcess] = []
        for rank in ranks:
            found = self._open.get(rank.execution_id or "")
            if found is None:
                left.append(rank)
            else:
                self._drop(found, "It was interrupted.", interrupted=True)
                left += [rank] if rank.rank in found.transaction.unprepared else []
        return left

    def end(self, execution_id: str, reason: str) -> None:
        """Drop a transfer that must not take longer, whether it has begun or not, unless it is decided."""
        found = self._open.get(execution_id)
        if found is not None and found.execution.state == "queued":
            self._dispatcher.abort([found.execution], "aborted", _failed(found.job, reason))
        elif found is not None:
            self._too_late(found, reason)

    def end_all(self, reason: str) -> None:
        """Drop all transfers that are not decided, because the part has failed."""
        for found in list(self._open.values()):
            if found.execution.state == "queued":
                self._dispatcher.abort([found.execution], "aborted", _failed(found.job, reason))
            self._drop(found, join(reason, SEE_LATER) if found.transaction.phase == "deciding" else reason)
            self._close(found)
        self._dispatcher.pump()

    # -- inside -----------------------------------------------------------------------------------------

    def _surely(self, found: OpenTransfer, step: Callable[[], None]) -> None:
        """Do a step of a transfer. An exception ends this transfer and no other: its ranks wait for a decision."""
        try:
            step()
        except Exception as err:
            log.exception("The %s of '%s' failed", found.job.spec.action, found.job.spec.name)
            self._failed_in(found, err)

    def _failed_in(self, found: OpenTransfer, err: BaseException) -> None:
        reason = f"The agent failed: {err!r:.200}. See agent.log in the group's folder."
        self._drop(found, reason)
        if found.execution.is_final:
            self._close(found)
        elif found.transaction.phase == "kept":
            spec = found.job.spec
            self._group.add_note(f"The {spec.action} of '{spec.name}' counts, but {reason[0].lower()}{reason[1:]}")

    def _begun(self, found: OpenTransfer) -> None:
        spec = found.job.spec
        if found.transaction.ranks != found.execution.spec.ranks:  # the group was resized while it waited
            found.transaction = Transaction(found.execution.spec.ranks)
        if isinstance(found.job, SaveJob):
            found.job.group, found.job.execution_count = self._group.spec, self._dispatcher.execution_count
        late = f"It took longer than {spec.timeout_seconds:g} s. Give it more time (`timeout_seconds`)."
        too_late = partial(self._surely, found, partial(self._too_late, found, late))
        found.timer = asyncio.get_running_loop().call_later(spec.timeout_seconds, too_late)
        self._show(found)
        if isinstance(found.job, RestoreJob):
            here = [rank.rank for rank in self._group.ranks if rank.spec.node is None]
            if (problem := found.job.misfit(self._group.spec, here)) is not None:
                self._drop(found, str(problem))

    def _too_late(self, found: OpenTransfer, sentence: str) -> None:
        if found.transaction.phase == "open":
            sentence = f"{sentence} {found.transaction.unfinished()}"
        elif found.transaction.phase == "deciding":
            sentence = f"The folder {found.job.spec.folder} does not respond. {SEE_LATER}"
        self._drop(found, sentence)

    async def _decide(self, found: OpenTransfer) -> None:
        transaction = found.transaction
        counts = transaction.total_bytes, transaction.written_bytes
        try:
            await asyncio.to_thread(_keep, found.job, transaction.reports, *counts)
        except JupyterDistError as err:
            self._drop(found, str(err))
        except Exception as err:  # the disk, what a rank has reported, or what a file has in it
            if not isinstance(err, OSError):
                log.exception("The %s of '%s' failed", found.job.spec.action, found.job.spec.name)
            reason = (err.strerror if isinstance(err, OSError) else None) or f"{err!r:.200}"
            spec = found.job.spec
            self._drop(found, f"The {spec.action} could not be completed in {spec.folder}: {reason}.")
        else:
            found.exists = True
            if transaction.keep():
                self._send_decision(found, transaction.ranks)  # first: what follows must not keep ranks waiting
                self._surely(found, partial(self._note_kept, found))

    def _note_kept(self, found: OpenTransfer) -> None:
        if isinstance(found.job, RestoreJob):
            self._dispatcher.count_on(found.job.record.model["execution_count"], found.job.cells)
            self._show(found)

    def _drop(self, found: OpenTransfer, reason: str, *, interrupted: bool = False) -> None:
        if not found.transaction.drop(reason, interrupted=interrupted):
            return
        found.execution.error = _failed(found.job, reason)
        self._send_decision(found, found.transaction.ranks)  # ranks that still prepare find it when they have done so
        for number in found.transaction.unprepared:
            rank = self._group.ranks[number]
            if rank.execution_id == found.execution.id:
                rank.interrupt()

    def _send_decision(self, found: OpenTransfer, ranks: Iterable[int]) -> None:
        transaction = found.transaction
        decision = TransferDecision(
            execution_id=found.execution.id,
            keep=transaction.phase == "kept",
            reason=transaction.reason,
            interrupted=transaction.interrupted,
        )
        for number in ranks:
            try:
                self._core.send(self._group.ranks[number], decision)
            except Exception:  # the others must get it all the same
                log.exception("Rank %d did not get the decision about the %s", number, found.job.spec.action)

    def _why_ended(self, found: OpenTransfer, number: int) -> str:
        rank = self._group.ranks[number]
        if rank.state == "dead" and rank.exit is not None:
            return f"Rank {number} {rank.exit['reason']}."
        return f"Rank {number}: {rank.cell_error or 'it ended early'}."

    def _ended(self, found: OpenTransfer) -> None:
        if found.transaction.drop("It has ended."):
            self._send_decision(found, found.transaction.ranks)
        self._close(found)

    def _close(self, found: OpenTransfer) -> None:
        """Forget a transfer, and release its lock and its files. Idempotent."""
        if self._open.pop(found.execution.id, None) is None:
            return
        if found.timer is not None:
            found.timer.cancel()
        if found.deciding is not None and not found.deciding.done():  # a slow disk: a save that is made is not removed
            found.deciding.add_done_callback(lambda _: self._tidy(found))
        else:
            self._tidy(found)

    def _tidy(self, found: OpenTransfer) -> None:
        after = found.job.tidy if found.exists else found.job.drop
        asyncio.get_running_loop().run_in_executor(None, after)

    def _show(self, found: OpenTransfer) -> None:
        spec, transaction = found.job.spec, found.transaction
        shown: Transfer = {
            "action": "save" if spec.action == "save" else "restore",
            "name": spec.name,
            "folder": spec.folder,
            "done_bytes": transaction.done_bytes,
            "total_bytes": transaction.total_bytes,
        }
        if isinstance(found.job, RestoreJob) and found.job.num_names is not None:
            shown["num_names"] = found.job.num_names
        found.execution.add("transfer", shown)
        self._core.execution_changed(found.execution)


def action_of(execution: AgentExecution) -> str:
    """Return `save` or `restore`, if an execution is one; else an empty text."""
    action = str((execution.spec.call or {}).get("do"))
    return action if action in ("save", "restore") else ""


def python_version(ranks: Iterable[RankProcess]) -> str:
    """Return the lowest version of Python that these ranks run; empty if none is known."""
    return min({rank.python_version for rank in ranks if rank.python_version}, default="")


def _keep(job: Job, reports: Reports, total_bytes: int, written_bytes: int) -> None:
    try:
        job.keep(reports, total_bytes, written_bytes)
    except StopIteration as err:  # asyncio would wait for ever
        raise RuntimeError(f"{err!r}") from err


def _failed(job: Job, reason: str) -> JupyterDistError:
    if isinstance(job, SaveJob):
        return JupyterDistError("not_saved", NOTHING_SAVED + reason)
    return JupyterDistError("not_restored", say("Nothing was restored: %1", reason))
