"""The owner of torch's profiler: a process has one, and a second session beside ours would end the process (SIGSEGV).

If a cell uses the profiler itself, our session ends before; `%%profile` returns the events recorded until then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.guard.own import threading

BEFORE = (
    "jupyter_dist: A profiler of torch is on already, and a process has only one: the cell runs without %%profile.\n"
)
MEANWHILE = (
    "jupyter_dist: The cell uses torch's profiler itself, and a process has only one: %%profile has recorded what came "
    "before.\n"
)
TWICE = "jupyter_dist: %%profile is there twice: the first one records the cell.\n"


class Sessions:
    """The sessions of torch's profiler in this process, ours and the users'."""

    def __init__(self) -> None:
        self.is_theirs = False  # a user's code has begun one, and not ended it
        self._ours: Any = None  # torch.profiler.profile, while it records
        self._thread = 0  # that has begun it
        self._is_own_call = False
        torch_compat.wrap_profiler(self._beginning, self._ending)

    @property
    def are_ours(self) -> bool:
        """Whether our session records."""
        return self._ours is not None

    def begin(self, recorder: Any) -> None:
        """Start our session."""
        with self._own_call():
            recorder.start()
        self._ours, self._thread = recorder, threading.get_ident()

    def end(self) -> bool:
        """Stop our session; return False if it was stopped before."""
        recorder, self._ours = self._ours, None
        if recorder is None or not torch_compat.is_profiling():
            return False
        with self._own_call():
            recorder.stop()
        return True

    @contextlib.contextmanager
    def _own_call(self) -> Iterator[None]:
        self._is_own_call = True
        try:
            yield
        finally:
            self._is_own_call = False

    def _beginning(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def begin(*args: Any, **kwargs: Any) -> Any:
            if self._is_own_call:
                return call(*args, **kwargs)
            self._give_way()
            self.is_theirs = True
            try:
                return call(*args, **kwargs)
            except BaseException:
                self.is_theirs = False
                raise

        return begin

    def _ending(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def end(*args: Any, **kwargs: Any) -> Any:
            if not self._is_own_call:
                self.is_theirs = False
            return call(*args, **kwargs)

        return end

    def _give_way(self) -> None:
        if self._ours is None:
            return
        if threading.get_ident() != self._thread:  # ours can only be stopped where it was started
            raise RuntimeError("%%profile records this cell, and a process has only one profiler of torch.")
        self.end()
