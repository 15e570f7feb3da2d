"""Interrupting the running cell: a guarded SIGINT, repeated until the cell noticed, then stronger means."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from jupyter_dist.rank.collectives import unhang
from jupyter_dist.rank.guard.own import asyncio, os, read_text, signal, threading, time

from . import tracebacks
from .cell import Execution

DEFERRED_RETRY_SECONDS = 0.02  # the signal met our own code: it leaves at once
UNNOTICED_RETRY_SECONDS = 0.5
NOTICED_RETRY_SECONDS = 2.0  # KeyboardInterrupt was raised: the cell may be saving a checkpoint
UNHANG_AFTER_SECONDS = 1.0
FORCE_AFTER_SECONDS = 2.0
PEER_NEWS_SECONDS = 0.5  # a broken connection is seen sooner than the agent hears of a death

# For a cell that took SIGINT for itself or masked it; nobody else uses this one.
PRIVATE_SIGNAL = signal.SIGRTMAX - 1

# Our own modules, which KeyboardInterrupt must not hit. Those that wrap what a cell calls and waits for say so:
# they set INTERRUPTIBLE.
_ROOM = ".".join(__name__.split(".")[:2]) + "."

# wait4 and waitid, as /proc/PID/syscall shows them.
_WAITING = {"x86_64": (61, 247), "aarch64": (260, 95)}

# gloo itself says "typically caused by a remote worker crashing".
_ANEW = "The process group must be formed anew; variables are kept."
_BROKEN = f"the collective never completed; it was ended by closing this rank's connections. {_ANEW}"


class Interrupter:
    """The signal handler (main thread) and the ladder of means (side thread)."""

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
        """Hear SIGINT, whatever the last cell made of it; forget what was meant for that cell."""
        if signal.SIGINT in signal.pthread_sigmask(signal.SIG_UNBLOCK, ()):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for signum in (signal.SIGINT, PRIVATE_SIGNAL):
            # == and not `is`: each access makes a new bound method.
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
        """Whether KeyboardInterrupt would meet a cell's code before it met ours, which it would damage."""
        while frame is not None:
            if frame.f_globals is self._user_globals:
                return True
            if _is_guarded(frame.f_globals):
                return False
            frame = frame.f_back
        return False

    def safe_point(self) -> None:
        """Raise the KeyboardInterrupt that had to wait for our own code (called where that has done its work)."""
        if self._deferred and threading.current_thread() is self._main and self.current is not None:
            frame: FrameType | None = sys._getframe()
            while frame is not None and frame.f_globals is not self._user_globals:
                frame = frame.f_back
            if frame is not None:
                self._deferred = False
                self.current.noticed_interrupt = True
                raise KeyboardInterrupt

    def left_collective(self) -> None:
        """The running cell leaves a collective that is not complete."""
        if self.current is not None:
            self.current.broke_process_group = True

    def check(self) -> bool:
        """Whether the running cell was asked to stop."""
        return self.current is not None and self.current.interrupt_at is not None

    def check_unnoticed(self) -> bool:
        """Whether the running cell was asked to stop before its code ran; says so once."""
        execution = self.current
        if execution is None or execution.interrupt_at is None or execution.noticed_interrupt:
            return False
        execution.noticed_interrupt = True
        return True

    def explain(self, error: BaseException, trace: TracebackType | None) -> tuple[BaseException, TracebackType | None]:
        """Return what an error of an interrupted cell is called, and the part of its traceback that tells something."""
        execution = self.current
        if execution is None or execution.interrupt_at is None:
            return self._explain_broken(error), trace
        if isinstance(error, asyncio.CancelledError):  # a wait was cancelled; people know it by its other name
            return KeyboardInterrupt(), trace
        if isinstance(error, SystemExit) and isinstance(error.__context__, KeyboardInterrupt):
            return KeyboardInterrupt(), trace  # Lightning's Trainer makes an exit of it
        if execution.broke_process_group and isinstance(error, (RuntimeError, KeyboardInterrupt)):
            return KeyboardInterrupt(_BROKEN), tracebacks.before(trace, "torch")
        return error, trace

    def _explain_broken(self, error: BaseException) -> BaseException:
        """A collective that failed because of another rank: say so, and which one if the agent knows in time."""
        if not unhang.is_of_a_broken_group(error):
            return error
        known = self._peer_news.wait(PEER_NEWS_SECONDS)
        reason = self._lost_peer if known else "Another rank left this collective: it ended, or was interrupted"
        return RuntimeError(f"{reason}. {_ANEW}\n(torch said: {error})")

    # -- side thread --------------------------------------------------------------------------------

    def peer_lost(self, text: str) -> None:
        """Another rank is gone; `text` says which, and how."""
        self._lost_peer = text
        self._peer_news.set()

    def all_peers_live(self) -> None:
        """The process group is formed anew (main thread)."""
        self._peer_news.clear()

    def request(self, execution_id: str) -> None:
        """Stop that execution if it runs."""
        execution = self.current
        if execution is None or execution.execution_id != execution_id:
            return
        if execution.interrupt_at is None:
            execution.interrupt_at = time.monotonic()
        self._signal()

    def timeout(self) -> float | None:
        """In how many seconds `tick` wants to be called; None when nothing is outstanding."""
        execution = self.current
        if execution is None or execution.interrupt_at is None:
            return None
        return DEFERRED_RETRY_SECONDS if self._deferred else 0.1

    def tick(self) -> None:
        """Take the next step if the cell still runs and it is time."""
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
        signal.pthread_kill(self._main.ident, signal.SIGINT)

    def _insist(self, age: float, execution: Execution) -> None:
        """The main thread does not get to Python's signal handling: it is in C, or waits for a child."""
        if _signal_awaited_children():
            return
        if age >= UNHANG_AFTER_SECONDS:
            # Set first: the cell may have ended before this thread goes on.
            execution.broke_process_group, was_broken = True, execution.broke_process_group
            execution.broke_process_group = self._unhang() or was_broken
        self._signal()
        if age >= FORCE_AFTER_SECONDS:
            self._force(execution)

    def _force(self, execution: Execution) -> None:
        """The cell took SIGINT for itself (SIG_IGN, for one) or masked it: raise by other means, one at a time."""
        if signal.getsignal(signal.SIGINT) == self._on_sigint and not _masks_sigint():
            return
        if execution.had_private_signal:
            self._raise_in_main_thread()
            return
        execution.had_private_signal = True
        assert self._main.ident is not None
        signal.pthread_kill(self._main.ident, PRIVATE_SIGNAL)

    def _raise_in_main_thread(self) -> None:
        """Raise without a signal, for a loop in Python that masks them all."""
        frame = sys._current_frames().get(self._main.ident or 0)
        if self._is_user_code(frame):
            error = ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._main.ident or 0), error)


def _is_guarded(module: dict[str, Any]) -> bool:
    name = module.get("__name__")
    return isinstance(name, str) and name.startswith(_ROOM) and not module.get("INTERRUPTIBLE", False)


def _masks_sigint() -> bool:
    """Whether the main thread blocks SIGINT."""
    status = read_text(f"/proc/self/task/{os.getpid()}/status")
    return bool(int(status.split("SigBlk:")[1].split()[0], 16) & 1 << (signal.SIGINT - 1))


def _signal_awaited_children() -> bool:
    """If the main thread waits for a child in C (os.system does), do what a terminal's Ctrl-C would do."""
    # Only then: workers of a DataLoader, say, are not to be disturbed. The rank leads its process group.
    if unhang.main_thread_syscall()[0] not in _WAITING.get(platform.machine(), ()) or os.getpgrp() != os.getpid():
        return False
    os.killpg(os.getpid(), signal.SIGINT)
    return True
