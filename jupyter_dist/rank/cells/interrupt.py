"""Interrupts the running cell: a guarded SIGINT, repeated until the cell notices, then stronger means."""

from __future__ import annotations

import bdb
import contextlib
import ctypes
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any

from jupyter_dist.protocol.wire.specs import INTERRUPT_SIGNAL
from jupyter_dist.rank.cells.errors.reasons import PeerNews, ReportedError, explain_failure
from jupyter_dist.rank.collectives import failures
from jupyter_dist.rank.collectives.diagnosis import mainthread
from jupyter_dist.rank.guard.frames import of_main_thread
from jupyter_dist.rank.guard.handlers import Handlers
from jupyter_dist.rank.guard.own import asyncio, os, read_text, signal, threading, time
from jupyter_dist.rank.ipython import tracebacks

DEFERRED_RETRY_SECONDS = 0.02  # the signal arrived in our own code, which returns at once
UNNOTICED_RETRY_SECONDS = 0.5
NOTICED_RETRY_SECONDS = 2.0  # KeyboardInterrupt was raised: the cell may be saving a checkpoint
UNHANG_AFTER_SECONDS = 1.0
FORCE_AFTER_SECONDS = 2.0
# How long a first interrupt waits for the end of an import. After an interrupted one, Python keeps the inner modules
# half done: a rank could never make a DDP again.
IMPORT_SECONDS = 3.0

# For cells that handle SIGINT themselves or mask it, and for handlers of cells that were held back
# (guard/handlers.py); no other code uses these signals.
PRIVATE_SIGNAL = INTERRUPT_SIGNAL  # also sent by the agent, when the side thread cannot run
REMINDER_SIGNAL = signal.SIGRTMAX - 2

# Our own modules, in which KeyboardInterrupt must not be raised. Modules that wrap calls of a cell set INTERRUPTIBLE;
# modules that call a user's function or script, which is interrupted as a cell is, set CALLS_USER_CODE. These are flags
# and no names, because a module may be moved.
_RANK = ".".join(__name__.split(".")[:2]) + "."
_OURS = (_RANK, f"{__name__.partition('.')[0]}.parts.")

# Its frame is the innermost one of ours while the event loop waits, or runs callbacks of earlier cells.
_LOOP = (f"{_RANK}main", "_serve")

# A group is in one of its lists before it is in the other; for what is raised in between, IPython shows an IndexError
# and continues. Only in its own frames: a library that it calls may take long.
_FORMATS = "IPython.lib.pretty"

_IMPORTS = "<frozen importlib._bootstrap>"  # the file of the frames below which a module runs

# wait4 and waitid, by their numbers in /proc/PID/syscall.
_WAITING = {"x86_64": (61, 247), "aarch64": (260, 95)}

_RE_CREATED = "The process group is re-created before the next cell; variables are kept."
_BROKEN = f"the collective never completed; it was ended by closing this rank's connections. {_RE_CREATED}"
# On a device, the work that the cell queued after the collective runs then (seen on an H100: a step of an optimizer).
_ABORTED = (
    "the collective never completed; its communicators were aborted. Its result is undefined, and so is what this "
    f"cell computed from it, parameters that an optimizer updated too. {_RE_CREATED}"
)


@dataclass
class CurrentExecution:
    """The state of a cell that the main thread and the side thread share."""

    execution_id: str
    execution_count: int
    silent: bool
    code: str
    call: dict[str, Any] | None = None  # what to do instead of running the code (see clients/calls.py)
    allow_stdin: bool = False  # whether its client answers questions (see stdin.py)
    empty_cache: bool = False  # whether to release cached memory if the cell changed the memory in use
    asked: Mapping[str, Any] = field(default_factory=dict)  # what the agent's parts have sent with it, by part
    started_at: float = field(default_factory=time.monotonic)
    began_ns: int = field(default_factory=time.time_ns)  # as torch's recorders count
    interrupt_at: float | None = None  # time of the first interrupt
    insists: bool = False  # its user has interrupted it twice
    frees: bool = False  # collectives on devices may be ended: the agent sets it on all ranks of the cell
    was_signalled: bool = False  # by the agent, whose request is still to be read
    had_private_signal: bool = False  # SIGINT did not reach the cell's code
    noticed_interrupt: bool = False  # KeyboardInterrupt was raised in the cell's code
    broke_process_group: bool = False  # its connections were broken to end a hung collective
    cancel: Callable[[], object] | None = None  # set while it awaits: cancels the wait


class Interrupter:
    """The signal handler (main thread) and the escalation (side thread)."""

    def __init__(
        self,
        user_globals: dict[str, Any],
        unhang: Callable[[bool], bool],
        find_failure: Callable[[BaseException], failures.Failure | None],
        wake: Callable[[], None],
        was_aborted: Callable[[], bool],
    ) -> None:
        self.current: CurrentExecution | None = None  # the side thread sets it, the end of a cell clears it
        self._user_globals = user_globals
        self._unhang = unhang
        self._find_failure = find_failure
        self._wake = wake
        self._was_aborted = was_aborted
        self._pid = os.getpid()
        self._main = threading.main_thread()
        self._num_noticed = 0
        self._num_noticed_at_signal = 0
        self._deferred = False
        self._signalled_at = 0.0
        self._reminded_at = 0.0
        self._forks = False
        self.handlers = Handlers(self._on_sigint, self._may_run_handler, wake)
        self.peer_news = PeerNews()

    def running(self) -> CurrentExecution | None:
        """Return the execution that runs (any thread)."""
        return self.current

    # -- main thread --------------------------------------------------------------------------------

    def begin_cell(self) -> None:
        """Install the SIGINT handler, which the last cell may have replaced; drop interrupts meant for that cell."""
        ours = {signal.SIGINT: self._on_sigint, PRIVATE_SIGNAL: self._on_sigint, REMINDER_SIGNAL: self._on_reminder}
        for signum, handler in ours.items():
            # `!=`, not `is not`: each access creates a new bound method.
            if signal.getsignal(signum) != handler:
                signal.signal(signum, handler)
        # After the handlers: an interrupt that waits would end the rank if the cell has left SIG_DFL.
        if signal.SIGINT in signal.pthread_sigmask(signal.SIG_UNBLOCK, ()):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        self._deferred = False

    def end_cell(self) -> None:
        """Run the cell's handlers whose signals arrived after its code; exceptions of the handlers pass through."""
        self.handlers.run(sys._getframe())

    def _on_sigint(self, signum: int, frame: FrameType | None) -> None:
        if os.getpid() != self._pid:  # a child of DataLoader or multiprocessing: Python's usual behaviour
            raise KeyboardInterrupt
        self._num_noticed += 1
        execution = self.current
        if execution is None:
            return
        if signum == PRIVATE_SIGNAL and execution.interrupt_at is None:  # the agent's, before its request was read
            execution.interrupt_at = self._signalled_at = time.monotonic()
            execution.was_signalled = True
        if self._is_user_code(frame) and not self._forks and not self._waits_for_import(frame, execution):
            self._deferred = False
            execution.noticed_interrupt = True
            raise KeyboardInterrupt
        if execution.cancel is not None:
            execution.noticed_interrupt = True
            execution.cancel()
        else:
            self._deferred = True

    def _on_reminder(self, _signum: int, frame: FrameType | None) -> None:
        if frame is not None and self._may_run_handler(frame):
            self.handlers.run(frame)

    def _waits_for_import(self, frame: FrameType | None, execution: CurrentExecution) -> bool:
        """Whether the cell imports a module, which a first interrupt lets end."""
        at = execution.interrupt_at
        if at is None or execution.insists or time.monotonic() - at >= IMPORT_SECONDS:
            return False
        while frame is not None and not self.calls_user_code(frame):
            if frame.f_code.co_filename == _IMPORTS:
                return True
            frame = frame.f_back
        return False

    def _is_user_code(self, frame: FrameType | None) -> bool:
        """Whether KeyboardInterrupt would be raised in a cell's code, and not in ours, which it would damage."""
        found = self._innermost(frame)
        return found is not None and self.calls_user_code(found)

    def _may_run_handler(self, frame: FrameType | None) -> bool:
        """Whether a cell's handler may run: also while the event loop waits, as a cell does that awaits."""
        found = self._innermost(frame)
        if self._forks:
            return False
        if found is None or self.calls_user_code(found):
            return True
        return (found.f_globals["__name__"], found.f_code.co_name) == _LOOP

    def _innermost(self, frame: FrameType | None) -> FrameType | None:
        """Return the innermost frame of the user's code or of guarded code; libraries belong to their callers."""
        if frame is not None and frame.f_globals.get("__name__") == _FORMATS:
            return frame
        while frame is not None and not self.calls_user_code(frame) and not _is_guarded(frame.f_globals):
            frame = frame.f_back
        return frame

    def calls_user_code(self, frame: FrameType) -> bool:
        """Whether a frame is a cell's own, or a frame of ours that calls a user's function or script."""
        return frame.f_globals is self._user_globals or (
            _is_ours(frame.f_globals) and bool(frame.f_globals.get("CALLS_USER_CODE", False))
        )

    def safe_point(self) -> None:
        """Run the handlers, and raise the KeyboardInterrupt, that waited while our own code ran. Called at its end."""
        if not (self._deferred or self.handlers.waiting) or threading.get_ident() != self._main.ident:
            return
        frame: FrameType | None = sys._getframe()
        while frame is not None and not self.calls_user_code(frame):
            frame = frame.f_back
        if frame is None or self._forks or os.getpid() != self._pid:
            return
        self.handlers.run(frame)
        if self._deferred and self.current is not None:
            self._deferred = False
            self.current.noticed_interrupt = True
            raise KeyboardInterrupt

    def begin_fork(self) -> None:
        """Hold back interrupts and handlers: Python drops exceptions of its hooks before and after a fork."""
        if threading.get_ident() == self._main.ident:
            self._forks = True

    def end_fork(self) -> None:
        """Allow interrupts again; the side thread repeats waiting ones at once, because the next fork may come soon."""
        if threading.get_ident() == self._main.ident:
            self._forks = False
            if self._deferred or self.handlers.waiting:
                self._reminded_at = self.handlers.held_at = 0.0
                self._wake()

    def left_collective(self) -> None:
        """Record an incomplete collective that the running cell has left."""
        if self.current is not None:
            self.current.broke_process_group = True

    def check(self) -> bool:
        """Whether the running cell was interrupted."""
        return self.current is not None and self.current.interrupt_at is not None

    def check_unnoticed(self) -> bool:
        """Return, only once, whether the running cell was interrupted before its code ran."""
        execution = self.current
        if execution is None or execution.interrupt_at is None or execution.noticed_interrupt:
            return False
        execution.noticed_interrupt = True
        return True

    def explain(self, error: BaseException, trace: TracebackType | None) -> ReportedError:
        """Return the error to report for an interrupted cell, and the useful part of its traceback."""
        execution = self.current
        if execution is None or execution.interrupt_at is None:
            reported = explain_failure(error, trace, self._find_failure, self.peer_news)
            # While it waited for the reason: another rank was interrupted first, and closed its connections.
            if execution is None or execution.interrupt_at is None:
                return reported
        if _stands_for_interrupt(error):
            return ReportedError(KeyboardInterrupt(), trace)
        left = execution.broke_process_group and isinstance(error, KeyboardInterrupt)
        if left or self._is_failure(error, trace):
            why = _ABORTED if self._was_aborted() else _BROKEN
            return ReportedError(KeyboardInterrupt(why), tracebacks.before(trace, "torch"))
        if isinstance(error, KeyboardInterrupt) and failures.is_inside(error):  # on its way to or from the wait
            return ReportedError(error, tracebacks.before(trace, "torch"))
        return ReportedError(error, trace)

    def _is_failure(self, error: BaseException, trace: TracebackType | None) -> bool:
        """Whether a collective failed, or was interrupted while it failed because another rank was first."""
        failure = self._find_failure(error)
        if failure is None:
            return False
        interrupts_it = isinstance(error, KeyboardInterrupt) and tracebacks.before(trace, "torch") is not trace
        return failure.error is error or interrupts_it

    # -- side thread --------------------------------------------------------------------------------

    def request(self, execution_id: str, frees: bool = False) -> None:
        """Interrupt an execution if it is running; `frees`: also end collectives on devices that never complete."""
        execution = self.current
        if execution is None or execution.execution_id != execution_id:
            return
        if execution.interrupt_at is None:
            execution.interrupt_at = time.monotonic()
        elif not execution.was_signalled and not frees:
            execution.insists = True
        if execution.was_signalled:  # for this request
            execution.was_signalled = False
        else:
            self._signal()
        if frees:
            execution.frees = True
            self._free(execution)

    def timeout(self) -> float | None:
        """Return the seconds until `tick` must be called; None if no interrupt and no handler is pending."""
        if self.handlers.waiting:
            return DEFERRED_RETRY_SECONDS
        execution = self.current
        if execution is None or execution.interrupt_at is None:
            return None
        return DEFERRED_RETRY_SECONDS if self._deferred else 0.1

    def tick(self) -> None:
        """Take the next step if it is due: for an interrupt while the cell runs, for a handler that was held back."""
        now = time.monotonic()
        if self.handlers.waiting and now - max(self.handlers.held_at, self._reminded_at) >= DEFERRED_RETRY_SECONDS:
            self._reminded_at = now
            self._send(REMINDER_SIGNAL)
        execution = self.current
        if execution is None or execution.interrupt_at is None:
            return
        waited = now - self._signalled_at
        if self._deferred:
            self._signal()
        elif self._num_noticed > self._num_noticed_at_signal:
            if waited >= NOTICED_RETRY_SECONDS:
                self._signal()
        elif waited >= UNNOTICED_RETRY_SECONDS:
            self._signalled_at = now
            self._insist(now - execution.interrupt_at, execution)

    def _signal(self) -> None:
        self._signalled_at = time.monotonic()
        self._num_noticed_at_signal = self._num_noticed
        self._deferred = False
        handler = self.handlers.of(signal.SIGINT)
        # After `continue`, pdb handles SIGINT: it would open its prompt. SIG_DFL would end the rank.
        is_for_cells = callable(handler) and not isinstance(getattr(handler, "__self__", None), bdb.Bdb)
        self._send(signal.SIGINT if is_for_cells else PRIVATE_SIGNAL)

    def _send(self, signum: int) -> None:
        """Signal the main thread, unless a cell has removed our handler of that signal: it would end the rank."""
        if callable(signal.getsignal(signum)):
            signal.pthread_kill(self._main.ident or 0, signum)

    def _insist(self, age: float, execution: CurrentExecution) -> None:
        """Help a main thread that does not reach Python's signal handling: it is in C code, or waits for a child."""
        if _signal_awaited_children():
            self._signal()
            return
        if age >= UNHANG_AFTER_SECONDS:
            self._free(execution)
        self._signal()
        if age >= FORCE_AFTER_SECONDS:
            self._force(execution)

    def _free(self, execution: CurrentExecution) -> None:
        # Set the flag first: the cell may end before this thread continues.
        execution.broke_process_group, was_broken = True, execution.broke_process_group
        execution.broke_process_group = self._unhang(execution.frees) or was_broken

    def _force(self, execution: CurrentExecution) -> None:
        """The cell handles SIGINT itself (for example SIG_IGN) or masks it: raise by other means, one at a time."""
        if signal.getsignal(signal.SIGINT) == self._on_sigint and not _masks_sigint():
            return
        if execution.had_private_signal:
            self._raise_in_main_thread()
            return
        execution.had_private_signal = True
        self._send(PRIVATE_SIGNAL)

    def _raise_in_main_thread(self) -> None:
        """Raise without a signal, for Python code that masks all signals."""
        frame = of_main_thread()
        if self._is_user_code(frame):
            error = ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._main.ident or 0), error)


def _is_ours(module: dict[str, Any]) -> bool:
    name = module.get("__name__")
    return isinstance(name, str) and name.startswith(_OURS)


def _is_guarded(module: dict[str, Any]) -> bool:
    return _is_ours(module) and not module.get("INTERRUPTIBLE", False)


def _masks_sigint() -> bool:
    """Whether the main thread blocks SIGINT."""
    status = read_text(f"/proc/self/task/{os.getpid()}/status")
    return bool(int(status.split("SigBlk:")[1].split()[0], 16) & 1 << (signal.SIGINT - 1))


def _signal_awaited_children() -> bool:
    """If the main thread waits for a child in C (as os.system does), signal the child like Ctrl-C in a terminal."""
    # Only then: DataLoader workers, for example, must not be signaled. The rank leads its process group.
    if mainthread.main_thread_syscall()[0] not in _WAITING.get(platform.machine(), ()) or os.getpgrp() != os.getpid():
        return False
    # Not the whole group at once: it has the rank, which SIGINT would end if the cell has set SIG_DFL.
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        if pid != os.getpid():
            with contextlib.suppress(OSError):  # it has ended
                _signal_member(pid)
    return True


def _signal_member(pid: int) -> None:
    """Send SIGINT to a process of this process group. Raises OSError if it has ended."""
    if os.getpgid(pid) != os.getpid():
        return
    fd = os.pidfd_open(pid)  # a later process with this pid is another one
    try:
        if os.getpgid(pid) == os.getpid():
            signal.pidfd_send_signal(fd, signal.SIGINT)
    finally:
        os.close(fd)


def _stands_for_interrupt(error: BaseException) -> bool:
    """Whether an error stands for a KeyboardInterrupt, which users expect to see."""
    if isinstance(error, (asyncio.CancelledError, bdb.BdbQuit)):  # of a cancelled wait; of a debugger at its prompt
        return True
    # Lightning's Trainer turns it into SystemExit.
    return isinstance(error, SystemExit) and isinstance(error.__context__, KeyboardInterrupt)
