"""Interrupts the running cell: a guarded SIGINT, repeated until the cell notices, then stronger means."""

from __future__ import annotations

import bdb
import ctypes
import platform
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any

from jupyter_dist.rank.collectives import unhang
from jupyter_dist.rank.guard.own import asyncio, os, read_text, signal, threading, time
from jupyter_dist.rank.ipython import tracebacks

DEFERRED_RETRY_SECONDS = 0.02  # the signal arrived in our own code, which returns at once
UNNOTICED_RETRY_SECONDS = 0.5
NOTICED_RETRY_SECONDS = 2.0  # KeyboardInterrupt was raised: the cell may be saving a checkpoint
UNHANG_AFTER_SECONDS = 1.0
FORCE_AFTER_SECONDS = 2.0
PEER_NEWS_SECONDS = 0.5  # a broken connection is noticed before the agent learns of a death

# For cells that handle SIGINT themselves or mask it; no other code uses this signal.
PRIVATE_SIGNAL = signal.SIGRTMAX - 1

# Our own modules, in which KeyboardInterrupt must not be raised. Modules that wrap calls of a cell set INTERRUPTIBLE.
_OURS = ".".join(__name__.split(".")[:2]) + "."

# What this module calls is the user's code, as a cell is.
_CALLS = f"{__name__.rpartition('.')[0]}.calls"

# wait4 and waitid, by their numbers in /proc/PID/syscall.
_WAITING = {"x86_64": (61, 247), "aarch64": (260, 95)}

# gloo itself says "typically caused by a remote worker crashing".
_RE_CREATE = "The process group must be re-created; variables are kept."
_PORT = re.compile(r"(?<=\]):\d+")
_BROKEN = f"the collective never completed; it was ended by closing this rank's connections. {_RE_CREATE}"


@dataclass
class Execution:
    """The state of a cell that the main thread and the side thread share."""

    execution_id: str
    execution_count: int
    silent: bool
    code: str
    call: dict[str, Any] | None = None  # what to do instead of running the code (see calls.py)
    allow_stdin: bool = False  # whether its client answers what it asks (see stdin.py)
    empty_cache: bool = False  # whether to release cached memory if the cell changed the memory in use
    started_at: float = field(default_factory=time.monotonic)
    interrupt_at: float | None = None  # time of the first interrupt
    had_private_signal: bool = False  # SIGINT did not reach the cell's code
    noticed_interrupt: bool = False  # KeyboardInterrupt was raised in the cell's code
    broke_process_group: bool = False  # its connections were broken to end a hung collective
    cancel: Callable[[], object] | None = None  # set while it awaits: cancels the wait


class Interrupter:
    """The signal handler (main thread) and the escalation (side thread)."""

    def __init__(self, user_globals: dict[str, Any], unhang: Callable[[], bool]) -> None:
        self.current: Execution | None = None  # the side thread sets it, the end of a cell clears it
        self._user_globals = user_globals
        self._unhang = unhang
        self._pid = os.getpid()
        self._main = threading.main_thread()
        self._num_noticed = 0
        self._num_noticed_at_signal = 0
        self._deferred = False
        self._signalled_at = 0.0
        self._peer_news = threading.Event()
        self._lost_peer = ""

    # -- main thread --------------------------------------------------------------------------------

    def begin_cell(self) -> None:
        """Install the SIGINT handler, which the last cell may have replaced; drop interrupts meant for that cell."""
        if signal.SIGINT in signal.pthread_sigmask(signal.SIG_UNBLOCK, ()):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for signum in (signal.SIGINT, PRIVATE_SIGNAL):
            # `==`, not `is`: each access creates a new bound method.
            if signal.getsignal(signum) != self._on_sigint:
                signal.signal(signum, self._on_sigint)
        self._deferred = False

    def _on_sigint(self, _signum: int, frame: FrameType | None) -> None:
        if os.getpid() != self._pid:  # a child of DataLoader or multiprocessing: Python's usual behaviour
            raise KeyboardInterrupt
        self._num_noticed += 1
        execution = self.current
        if execution is None:
            return
        if self._is_user_code(frame):
            self._deferred = False
            execution.noticed_interrupt = True
            raise KeyboardInterrupt
        if execution.cancel is not None:
            execution.noticed_interrupt = True
            execution.cancel()
        else:
            self._deferred = True

    def _is_user_code(self, frame: FrameType | None) -> bool:
        """Whether KeyboardInterrupt would be raised in a cell's code, not in ours, which it would damage."""
        while frame is not None:
            if self.calls_user_code(frame):
                return True
            if _is_guarded(frame.f_globals):
                return False
            frame = frame.f_back
        return False

    def calls_user_code(self, frame: FrameType) -> bool:
        """Whether it is a cell's own frame, or the one from which we call a user's function or script (calls.py)."""
        return frame.f_globals is self._user_globals or frame.f_globals.get("__name__") == _CALLS

    def safe_point(self) -> None:
        """Raise a KeyboardInterrupt that was deferred while our own code ran (called when that is done)."""
        if self._deferred and threading.current_thread() is self._main and self.current is not None:
            frame: FrameType | None = sys._getframe()
            while frame is not None and not self.calls_user_code(frame):
                frame = frame.f_back
            if frame is not None:
                self._deferred = False
                self.current.noticed_interrupt = True
                raise KeyboardInterrupt

    def left_collective(self) -> None:
        """Note that the running cell left an incomplete collective."""
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

    def explain(self, error: BaseException, trace: TracebackType | None) -> tuple[BaseException, TracebackType | None]:
        """Return the error to report for an interrupted cell, and the useful part of its traceback."""
        execution = self.current
        if execution is None or execution.interrupt_at is None:
            return self._explain_broken(error), trace
        if isinstance(error, asyncio.CancelledError):  # a cancelled wait; users expect KeyboardInterrupt
            return KeyboardInterrupt(), trace
        if isinstance(error, bdb.BdbQuit):  # a debugger caught the interrupt at its prompt, and then quit
            return KeyboardInterrupt(), trace
        if isinstance(error, SystemExit) and isinstance(error.__context__, KeyboardInterrupt):
            return KeyboardInterrupt(), trace  # Lightning's Trainer turns it into SystemExit
        if execution.broke_process_group and isinstance(error, (RuntimeError, KeyboardInterrupt)):
            return KeyboardInterrupt(_BROKEN), tracebacks.before(trace, "torch")
        return error, trace

    def _explain_broken(self, error: BaseException) -> BaseException:
        """Explain that a collective failed because of another rank, and name it if the agent knows in time."""
        if not unhang.is_of_a_broken_group(error):
            return error
        known = self._peer_news.wait(PEER_NEWS_SECONDS)
        reason = self._lost_peer if known else "Another rank left this collective: it died or was interrupted"
        # Without the port of the connection, which differs between ranks: the error of all of them is shown once.
        return RuntimeError(f"{reason}. {_RE_CREATE}\n(torch said: {_PORT.sub('', str(error))})")

    # -- side thread --------------------------------------------------------------------------------

    def peer_lost(self, text: str) -> None:
        """Handle the death of another rank; `text` says which one, and how."""
        self._lost_peer = text
        self._peer_news.set()

    def all_peers_live(self) -> None:
        """The process group was re-created (main thread)."""
        self._peer_news.clear()

    def request(self, execution_id: str) -> None:
        """Interrupt that execution if it is running."""
        execution = self.current
        if execution is None or execution.execution_id != execution_id:
            return
        if execution.interrupt_at is None:
            execution.interrupt_at = time.monotonic()
        self._signal()

    def timeout(self) -> float | None:
        """Return the seconds until `tick` must be called; None if no interrupt is pending."""
        execution = self.current
        if execution is None or execution.interrupt_at is None:
            return None
        return DEFERRED_RETRY_SECONDS if self._deferred else 0.1

    def tick(self) -> None:
        """Take the next step if the cell is still running and the step is due."""
        execution = self.current
        if execution is None or execution.interrupt_at is None:
            return
        now = time.monotonic()
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
        assert self._main.ident is not None
        # After `continue`, pdb handles SIGINT: it would open its prompt.
        is_pdbs = isinstance(getattr(signal.getsignal(signal.SIGINT), "__self__", None), bdb.Bdb)
        signal.pthread_kill(self._main.ident, PRIVATE_SIGNAL if is_pdbs else signal.SIGINT)

    def _insist(self, age: float, execution: Execution) -> None:
        """Help a main thread that does not reach Python's signal handling: it is in C code, or waits for a child."""
        if _signal_awaited_children():
            return
        if age >= UNHANG_AFTER_SECONDS:
            # Set the flag first: the cell may end before this thread continues.
            execution.broke_process_group, was_broken = True, execution.broke_process_group
            execution.broke_process_group = self._unhang() or was_broken
        self._signal()
        if age >= FORCE_AFTER_SECONDS:
            self._force(execution)

    def _force(self, execution: Execution) -> None:
        """The cell handles SIGINT itself (for example SIG_IGN) or masks it: raise by other means, one at a time."""
        if signal.getsignal(signal.SIGINT) == self._on_sigint and not _masks_sigint():
            return
        if execution.had_private_signal:
            self._raise_in_main_thread()
            return
        execution.had_private_signal = True
        assert self._main.ident is not None
        signal.pthread_kill(self._main.ident, PRIVATE_SIGNAL)

    def _raise_in_main_thread(self) -> None:
        """Raise without a signal, for Python code that masks all signals."""
        frame = sys._current_frames().get(self._main.ident or 0)
        if self._is_user_code(frame):
            error = ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._main.ident or 0), error)


def _is_guarded(module: dict[str, Any]) -> bool:
    name = module.get("__name__")
    return isinstance(name, str) and name.startswith(_OURS) and not module.get("INTERRUPTIBLE", False)


def _masks_sigint() -> bool:
    """Whether the main thread blocks SIGINT."""
    status = read_text(f"/proc/self/task/{os.getpid()}/status")
    return bool(int(status.split("SigBlk:")[1].split()[0], 16) & 1 << (signal.SIGINT - 1))


def _signal_awaited_children() -> bool:
    """If the main thread waits for a child in C (as os.system does), signal the child like Ctrl-C in a terminal."""
    # Only then: DataLoader workers, for example, must not be signaled. The rank leads its process group.
    if unhang.main_thread_syscall()[0] not in _WAITING.get(platform.machine(), ()) or os.getpgrp() != os.getpid():
        return False
    os.killpg(os.getpid(), signal.SIGINT)
    return True
