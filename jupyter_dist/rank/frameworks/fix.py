"""What a fix is, and how fixes speak: one line each in the rank's log, a notice once in a cell's output."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

INTERRUPTIBLE = True  # cells run and wait below these functions


class Room:
    """What fixes know of the rank that they are in. Made in the zygote; a rank's since `begin`."""

    def __init__(self) -> None:
        self.world_size = 1
        self.device = "cpu"
        self.meet: Callable[[float | None], AbstractContextManager[Any]] | None = None  # see meeting.py
        self._write: Callable[[str], None] | None = None
        self._unwritten: list[str] = []
        self._noticed: set[str] = set()

    def begin(self, world_size: int, device: str, write: Callable[[str], None]) -> None:
        """Become this rank's; `write` puts a line into its log, outside of any cell's output."""
        self.world_size, self.device, self._write = world_size, device, write
        for line in self._unwritten:  # of frameworks that the zygote imported
            write(line)
        self._unwritten = []

    def log(self, line: str) -> None:
        """Say something in the rank's log."""
        if self._write is None:
            self._unwritten.append(line)
        else:
            self._write(line)

    def notice(self, kind: str, text: str) -> None:
        """Say something in the cell's output, once for each kind."""
        if kind not in self._noticed:
            self._noticed.add(kind)
            sys.stderr.write(f"{text}\n")

    def notice_alone(self, kind: str, num_processes: int, way_on: str) -> None:
        """Say that something trains on one process where a whole group stands ready."""
        if num_processes == 1 and self.world_size > 1:
            many = f"not on the {self.world_size} ranks of this group together"
            self.notice(kind, f"{kind} runs on 1 process, {many}: each rank works for itself. {way_on}")


@dataclass(frozen=True)
class Fix:
    """One change to one module of a framework, made right after that module was imported."""

    package: str  # the distribution whose version is said
    seen_with: str  # the versions that it was written for and tested with
    does: str  # the line in the rank's log
    # Raises AttributeError or KeyError, before anything is changed, when what it changes is not there.
    apply: Callable[[Room, Any], None]


def need(owner: Any, *names: str) -> None:
    """Raise AttributeError unless it has all of these."""
    for name in names:
        getattr(owner, name)


def after(owner: Any, name: str, then: Callable[..., None]) -> None:
    """Have `then(*args, **kwargs)` called after each call of the method `name` that returned."""
    method = getattr(owner, name)

    @functools.wraps(method)
    def both(*args: Any, **kwargs: Any) -> Any:
        result = method(*args, **kwargs)
        then(*args, **kwargs)
        return result

    setattr(owner, name, both)


def before(owner: Any, name: str, first: Callable[..., None]) -> None:
    """Have `first(*args, **kwargs)` called ahead of each call of the method `name`."""
    method = getattr(owner, name)

    @functools.wraps(method)
    def both(*args: Any, **kwargs: Any) -> Any:
        first(*args, **kwargs)
        return method(*args, **kwargs)

    setattr(owner, name, both)
