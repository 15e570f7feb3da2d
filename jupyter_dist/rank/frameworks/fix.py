"""The form of fixes, and their reports: one line in the rank's log, or one notice in a cell's output."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

INTERRUPTIBLE = True  # cells run and wait below these functions

DEFAULT_TIMEOUT = timedelta(minutes=30)  # torch's


class RankComms(Protocol):
    """The methods of the rank's comms (cells/comms.py) that fixes call."""

    manager: Any

    def publish(self, kind: str, comm_id: str, content: dict[str, Any], buffers: list[Any] | None) -> None:
        """Send a message of a comm."""

    def enter(self, widget: Any) -> None:
        """Capture output in an Output widget."""

    def leave(self, widget: Any) -> None:
        """End the capture."""


class RankContext:
    """The rank in which fixes run. Created in the zygote, before there is a rank; `begin` assigns it to a rank."""

    def __init__(self) -> None:
        self.world_size = 1
        self.device = "cpu"
        self.comms: RankComms | None = None
        self.meet: Callable[[float | None], AbstractContextManager[Any]] | None = None  # see meeting.py
        # Sets a timeout of the default process group, None for torch's; returns whether it counts.
        self.keep_timeout: Callable[[Any], bool] | None = None
        self.pid = 0  # forked children of the rank have another
        self._write: Callable[[str], None] | None = None
        self._unwritten: list[str] = []
        self._noticed: set[str] = set()

    def begin(self, world_size: int, device: str, write: Callable[[str], None]) -> None:
        """Assign this context to a rank; `write` adds a line to the rank's log, outside of any cell's output."""
        self.world_size, self.device, self._write = world_size, device, write
        self.pid = os.getpid()
        for line in self._unwritten:  # from frameworks that the zygote imported
            write(line)
        self._unwritten = []

    def take_timeout(self, timeout: timedelta | None) -> None:
        """Use a framework's timeout of collectives. Torch's default is ignored: frameworks pass it by default."""
        if self.keep_timeout is None or os.getpid() != self.pid or timeout in (None, DEFAULT_TIMEOUT):
            return
        if not self.keep_timeout(timeout):
            self.notice("timeout", f"The timeout of {timeout} counts from the next process group on, not for this one.")

    def log(self, line: str) -> None:
        """Write a line to the rank's log."""
        if self._write is None:
            self._unwritten.append(line)
        else:
            self._write(line)

    def notice(self, kind: str, text: str) -> None:
        """Write to the cell's output, once for each kind."""
        if kind not in self._noticed:
            self._noticed.add(kind)
            sys.stderr.write(f"{text}\n")

    def notice_alone(self, kind: str, num_processes: int, hint: str) -> None:
        """Report training on one process although a whole group is available."""
        if num_processes == 1 and self.world_size > 1:
            many = f"not on the {self.world_size} ranks of this group together"
            self.notice(kind, f"{kind} runs on 1 process, {many}: each rank works for itself. {hint}")


@dataclass(frozen=True)
class Fix:
    """One change to one module of a framework, made right after that module was imported."""

    package: str  # the distribution whose version is logged
    seen_with: str  # the versions that it was tested with
    does: str  # the line in the rank's log
    # Raises AttributeError or KeyError, before it changes anything, if an attribute that it changes is missing.
    apply: Callable[[RankContext, Any], None]


def need(owner: Any, *names: str) -> None:
    """Raise AttributeError unless `owner` has all of these attributes."""
    for name in names:
        getattr(owner, name)


def after(owner: Any, name: str, then: Callable[..., None]) -> None:
    """Call `then(*args, **kwargs)` after each call of the method `name` that returned."""
    method = getattr(owner, name)

    @functools.wraps(method)
    def both(*args: Any, **kwargs: Any) -> Any:
        result = method(*args, **kwargs)
        then(*args, **kwargs)
        return result

    setattr(owner, name, both)


def before(owner: Any, name: str, first: Callable[..., None]) -> None:
    """Call `first(*args, **kwargs)` before each call of the method `name`."""
    method = getattr(owner, name)

    @functools.wraps(method)
    def both(*args: Any, **kwargs: Any) -> Any:
        first(*args, **kwargs)
        return method(*args, **kwargs)

    setattr(owner, name, both)
