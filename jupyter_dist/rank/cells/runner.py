"""The work of the main thread, in order: cells, and calls that must wait until no cell runs."""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass
from os import _exit as exit_now  # not the wrapped one: see spawning.py
from types import FrameType
from typing import Any, Protocol

from IPython.core.interactiveshell import ExecutionResult

from jupyter_dist.protocol.wire.specs import CALLBACK_ID
from jupyter_dist.rank.cells.clients.calls import Calls
from jupyter_dist.rank.cells.errors import reasons
from jupyter_dist.rank.cells.looks import life
from jupyter_dist.rank.cells.looks.kinds import kinds_of
from jupyter_dist.rank.collectives.process_group import Membership
from jupyter_dist.rank.guard import frames, usercode
from jupyter_dist.rank.guard.own import asyncio, signal, time, traceback
from jupyter_dist.rank.guard.surroundings import Surroundings
from jupyter_dist.rank.ipython import tracebacks
from jupyter_dist.rank.ipython.ipython_compat import run_to_end
from jupyter_dist.rank.memory import Mark, MemoryCounters
from jupyter_dist.rank.output.outbox import Outbox, write_all
from jupyter_dist.rank.output.streams import Streams
from jupyter_dist.transport.frames import Header

from .context import run_in
from .debuggers import Debuggers
from .interrupt import CurrentExecution, Interrupter
from .shell import RankShell
from .stdin import Stdin

Answer = Callable[..., None]


class CellPart(Protocol):
    """What happens around each cell besides running it: the parts (rank/part.py)."""

    def before(self, execution: CurrentExecution, code: str | None) -> None:
        """Prepare for a cell; the code is None if it is not known."""

    def after(self) -> dict[str, Any]:
        """Return the fields for the reply to the cell."""


REPLY_TRIES = 20


@dataclass(frozen=True)
class RunnerParts:
    """The parts of a rank that its runner uses."""

    loop: asyncio.AbstractEventLoop
    outbox: Outbox
    streams: Streams
    interrupter: Interrupter
    membership: Membership
    shell: RankShell
    memory: MemoryCounters
    calls: Calls
    surroundings: Surroundings
    stdin: Stdin
    debuggers: Debuggers
    around: CellPart
    context: Context  # the context variables of cells, callbacks and completions


class Runner:
    """Runs on the main thread's asyncio loop; `submit` and `when_idle` may be called from any thread."""

    def __init__(self, parts: RunnerParts) -> None:
        self.shell = parts.shell
        self._loop = parts.loop
        self._outbox = parts.outbox
        self._streams = parts.streams
        self._interrupter = parts.interrupter
        self._membership = parts.membership
        self._memory = parts.memory
        self._calls = parts.calls
        self._surroundings = parts.surroundings
        self._stdin = parts.stdin
        self._debuggers = parts.debuggers
        self._context = parts.context
        self._around = parts.around
        self._mark: Mark | None = None  # memory when the cell began
        self._in_use: tuple[int, int] | None = None  # device memory in use when the cell began
        self._work: deque[Callable[[], None]] = deque()
        self._task: asyncio.Task[ExecutionResult] | None = None  # the cell that awaits
        self._awaiting: Coroutine[Any, Any, ExecutionResult] | None = None  # its code
        self._works = False

    # -- any thread ---------------------------------------------------------------------------------

    def submit(self, execution: CurrentExecution) -> None:
        """Submit a cell; it counts as running from now on."""
        self._interrupter.current = execution
        self._outbox.busy = True  # from now on the side thread flushes on a timer
        self.when_idle(lambda: self._execute(execution))

    def when_idle(self, work: Callable[[], None]) -> None:
        """Call `work` in the main thread after the running cell."""
        self._work.append(work)
        self._loop.call_soon_threadsafe(self._next)

    def comes_by_itself(self, is_idle: bool) -> str | None:
        """Return a source of activity on this rank besides the code of its cell (looks/life.py)."""
        return life.comes_by_itself(self._loop, self._task, is_idle)

    def awaits_a_thread(self) -> bool:
        """Whether the cell awaits, and only a thread can wake it."""
        return life.awaits_a_thread(self._loop, self._task)

    def awaiting(self) -> list[FrameType]:
        """Return the frames of a cell that awaits, outermost first."""
        found, step = [], self._awaiting
        with frames.being_made():
            while (frame := getattr(step, "cr_frame", None)) is not None:
                found.append(frame)
                step = getattr(step, "cr_await", None)
        return found

    # -- main thread --------------------------------------------------------------------------------

    def call_back(self, execution_id: str | None, work: Callable[[], None]) -> None:
        """Call code that a cell has left behind; its output and its error belong to that execution.

        It does not count as a cell: the agent may send one meanwhile, which runs afterwards. While none waits, an
        interrupt is for CALLBACK_ID.
        """
        before, self._outbox.execution_id = self._outbox.execution_id, execution_id
        execution = CurrentExecution(CALLBACK_ID, self.shell.execution_count, True, "")
        if self._interrupter.current is None:
            self._interrupter.current = execution
        try:
            usercode.call(work)
        except BaseException as err:  # the boundary to user code
            self._leave_if_child(1)
            self._failed(err)
        finally:
            self._leave_if_child(0)
            if self._interrupter.current is execution:
                self._interrupter.current = None
            self._streams.flush()
            self._outbox.flush_text()
            self._outbox.execution_id = before

    def _next(self) -> None:
        if self._works:  # called by an event loop that a cell runs inside of this one (nest_asyncio)
            return
        self._works = True
        try:
            while self._work and self._task is None:
                self._context.run(self._work.popleft())
        finally:
            self._works = False

    def _execute(self, execution: CurrentExecution) -> None:
        try:
            self._begin(execution)
            coroutine, awaits = self._prepare(execution)
            if awaits:
                self._start_task(execution, coroutine)
                return
            result = run_to_end(coroutine)
        except BaseException as err:  # the boundary to user code: whatever IPython lets through, a reply must be sent
            self._leave_if_child(1)
            result = self._failed(err)
        self._finish(execution, result)

    def resume(self) -> None:
        """Continue with waiting work after an exception of a cell left the loop."""
        self._loop.call_soon(self._next)

    def _begin(self, execution: CurrentExecution) -> None:
        self._surroundings.restore()
        self.shell.restore_names()
        self._memory.hold_reserve()
        self._mark = self._memory.mark()
        self._streams.flush()
        self._outbox.flush_text()
        self._outbox.execution_id, self._outbox.capture = execution.execution_id, None
        self._interrupter.current = execution  # a callback before it may have set another
        self._streams.begin_cell()
        self._interrupter.begin_cell()
        self._membership.begin_cell()
        self._in_use = self._memory.in_use() if execution.empty_cache else None
        self.shell.last_error = None
        self.shell.execution_count = execution.execution_count

    def _prepare(self, execution: CurrentExecution) -> tuple[Coroutine[Any, Any, ExecutionResult], bool]:
        """Return the cell as a coroutine, and whether it awaits."""
        if execution.call is not None:
            self._before(execution, None)
            return self._carry_out(execution.call), False
        code, failure, awaits = execution.code, None, False
        try:
            code = self.shell.transform_cell(code)
            # Asking IPython compiles the cell a second time.
            awaits = ("await" in code or "async" in code) and self.shell.should_run_async(code, transformed_cell=code)
        except Exception as err:  # IPython shows it as an error of the cell
            failure = (type(err), err, err.__traceback__)
        self._before(execution, code)
        coroutine = self.shell.run_cell_async(
            execution.code,
            store_history=not execution.silent,
            silent=execution.silent,
            transformed_cell=code,
            preprocessing_exc_tuple=failure,
        )
        return coroutine, awaits and self.shell.awaits_on_asyncio()

    def _before(self, execution: CurrentExecution, code: str | None) -> None:
        self._around.before(execution, code)

    async def _carry_out(self, call: dict[str, Any]) -> ExecutionResult:
        try:
            self._calls.carry_out(call)
        except BaseException as err:  # the boundary to user code
            self._leave_if_child(1)
            return self._failed(err)
        return ExecutionResult(None)

    def _start_task(self, execution: CurrentExecution, coroutine: Coroutine[Any, Any, ExecutionResult]) -> None:
        task = self._task = self._loop.create_task(run_in(self._context, coroutine))
        self._awaiting = coroutine
        execution.cancel = lambda: self._loop.call_soon_threadsafe(task.cancel)
        task.add_done_callback(lambda _: self._task_done(execution, task, coroutine))

    def _task_done(
        self,
        execution: CurrentExecution,
        task: asyncio.Task[ExecutionResult],
        coroutine: Coroutine[Any, Any, ExecutionResult],
    ) -> None:
        self._task = self._awaiting = None
        execution.cancel = None
        coroutine.close()  # it has not begun if the task was cancelled before
        self._context.run(self._end_task, execution, task)
        self._next()

    def _end_task(self, execution: CurrentExecution, task: asyncio.Task[ExecutionResult]) -> None:
        try:
            result = task.result()
        except BaseException as err:  # cancelled before it began, or not caught by IPython
            result = self._failed(err)
        self._finish(execution, result)

    def _failed(self, err: BaseException) -> ExecutionResult:
        return self._failed_in(ExecutionResult(None), err)

    def _failed_in(self, result: ExecutionResult, err: BaseException) -> ExecutionResult:
        result.error_in_exec = err
        with contextlib.suppress(BaseException):  # the cell may have broken the display; the reply has the error, too
            self.shell.showtraceback((type(err), err, err.__traceback__))
        return result

    def _finish(self, execution: CurrentExecution, result: ExecutionResult) -> None:
        """End the cell and reply, even if a signal handler or trace function of the cell raises anywhere here."""
        for step in (
            stop_timer_of_cell,
            lambda: self._find_failed_collective(execution, result),
            self._streams.flush_replaced,
            self._interrupter.end_cell,
            self._debuggers.end_cell,
            self._stdin.end_cell,
            self._surroundings.restore,
            lambda: self._after_cell(execution, result),
            self.shell.display_pub.end_cell,
            lambda: self._leave_if_child(0 if result.success else 1),
            lambda: self._empty_cache(execution),
            self._streams.flush,
            self._streams.end_cell,
            self._surroundings.remember,
        ):
            try:
                step()
            except BaseException as err:  # the boundary to user code
                stop_timer()
                result.error_in_exec = result.error_in_exec or err
        self._outbox.busy = False
        self._interrupter.current = None
        for reply in (self._reply, self._least_reply):
            for _ in range(REPLY_TRIES):
                with contextlib.suppress(BaseException):
                    self._outbox.send(reply(execution, result))
                    return

    def _after_cell(self, execution: CurrentExecution, result: ExecutionResult) -> None:
        """Run IPython's hooks, which show figures."""
        try:
            self.shell.events.trigger("post_execute")
            if not execution.silent:
                self.shell.events.trigger("post_run_cell", result)
            self.shell.forget_error()
        except BaseException as err:  # the boundary to user code: a hook may raise SystemExit
            result.error_in_exec = err
            self.shell.showtraceback((type(err), err, err.__traceback__))

    def _find_failed_collective(self, execution: CurrentExecution, result: ExecutionResult) -> None:
        """Make the cell fail if one of its collectives failed: torch raises nothing until the next collective."""
        if not result.success or execution.interrupt_at is not None:
            return
        operation = self._membership.failure_of_cell(execution.began_ns)
        if operation is not None:
            self._failed_in(result, reasons.never_completed(operation, self._interrupter.peer_news))

    def _empty_cache(self, execution: CurrentExecution) -> None:
        if not execution.empty_cache:
            return
        try:
            self._memory.release_if_changed(self._in_use)
        except Exception as err:  # from a finalizer or the device: the cell is over, its reply must be sent
            report_stray(err)

    def _reply(self, execution: CurrentExecution, result: ExecutionResult) -> Header:
        error = result.error_before_exec or result.error_in_exec
        shown = self.shell.last_error
        changed = self._memory.since(self._mark) if self._mark is not None else None
        status = "ok"
        if error is not None or shown is not None:
            status = "interrupted" if _was_interrupted(execution, error, shown) else "error"
        return {
            "t": "reply",
            "execution_id": execution.execution_id,
            "status": status,
            "seconds": round(time.monotonic() - execution.started_at, 6),
            "ename": None if status == "ok" else shown["ename"] if shown else tracebacks.safe_name(error),
            "evalue": None if status == "ok" else shown["evalue"] if shown else tracebacks.safe_message(error),
            "process_group": self._membership.state(error),
            "collective_seq": self._membership.collective_seq(),
            "kinds": kinds_of(self.shell.user_ns),
            **({} if changed is None else {"memory": changed}),
            **self._around.after(),
        }

    def _least_reply(self, execution: CurrentExecution, result: ExecutionResult) -> Header:
        """Send a minimal reply, if the cell broke something that the full reply needs."""
        error = result.error_before_exec or result.error_in_exec
        return {
            "t": "reply",
            "execution_id": execution.execution_id,
            "status": "error",
            "seconds": 0.0,
            "ename": tracebacks.safe_name(error),
            "evalue": "A cell broke the code that ends cells on this rank. If the next cell fails, restart the group.",
            "process_group": "ok",
            "collective_seq": None,
        }

    def _leave_if_child(self, code: int) -> None:
        """End the child process of a cell that forked and let the child return."""
        if self._outbox.in_child:
            self._streams.flush()
            exit_now(code)


def _was_interrupted(execution: CurrentExecution, error: BaseException | None, shown: dict[str, Any] | None) -> bool:
    if execution.interrupt_at is None:
        return False
    if execution.broke_process_group or (shown is not None and shown["ename"] == "KeyboardInterrupt"):
        return True
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        # Lightning turns it into SystemExit; a cell that awaits is interrupted by cancelling its wait.
        if isinstance(error, (KeyboardInterrupt, asyncio.CancelledError)):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


_TIMER_STOPPED = (
    "jupyter_dist: This cell left a timer running (SIGALRM). It was stopped, because its handler would interrupt "
    "later cells, or end the rank between them.\n"
)


def stop_timer() -> None:
    """Stop a timer of the cell: a SIGALRM handler that raises outside of a cell would end the rank."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def stop_timer_of_cell() -> None:
    """Stop a timer whose handler is Python code, and report it in the cell."""
    if any(signal.getitimer(signal.ITIMER_REAL)) and callable(signal.getsignal(signal.SIGALRM)):
        stop_timer()
        with contextlib.suppress(Exception):  # the cell may have replaced sys.stderr
            sys.stderr.write(_TIMER_STOPPED)


def report_stray(err: BaseException) -> None:
    """Show an exception raised outside of cells (in a callback or background task) as late text."""
    if _ends_a_round(err):
        return
    try:
        traceback.print_exception(err)
    except BaseException:  # another exception, or broken code
        with contextlib.suppress(BaseException):
            write_all(2, f"{type(err).__name__}\n".encode())


def _ends_a_round(err: BaseException) -> bool:
    """Whether the loop found that its callbacks had run already: in a loop that a cell ran inside (nest_asyncio)."""
    trace = err.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    is_of_loop = trace is not None and trace.tb_frame.f_globals.get("__name__") == "asyncio.base_events"
    return isinstance(err, IndexError) and is_of_loop
