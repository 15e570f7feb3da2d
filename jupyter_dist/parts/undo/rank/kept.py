"""What is kept of cells: states of objects, counted once though several cells need them, and how they are written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.wire.places import cut
from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.guard.own import gc

from .states.mementos import Memento
from .states.memory import MemoryPiece, MemoryState
from .states.tensors import TensorLayout
from .walk import Key

NO_ROOM = "The limit on memory (DistApp.undo_bytes) left no room for it."


@dataclass
class KeptCell:
    """What is kept for one cell: the state before it."""

    execution_id: str
    is_silent: bool  # a request between cells: undone together with the cell before it
    number: int  # of the cells of this rank that kept undo
    mementos: list[tuple[Key, Memento]] = field(default_factory=list)
    not_kept: list[str] = field(default_factory=list)
    modes: list[Any] = field(default_factory=list)  # modes of torch that were on
    added_bytes: int = 0
    milliseconds: float = 0.0
    after: list[tuple[Key, Memento]] = field(default_factory=list)  # once it is undone: the state after it


class Held:
    """The states that cells need: how many bytes they take, and the last known one of each object."""

    def __init__(self) -> None:
        self.num_bytes = 0
        self.latest: dict[Key, Memento] = {}

    def hold(self, memento: Memento) -> None:
        """Count a state that a cell needs."""
        if memento.num_holders == 0:
            self.num_bytes += memento.num_bytes
            for piece in _pieces(memento):
                self.num_bytes += 0 if piece.num_holders else piece.size
                piece.num_holders += 1
        memento.num_holders += 1

    def release(self, mementos: list[tuple[Key, Memento]]) -> None:
        """Count states less that a cell does not need any more."""
        for key, memento in mementos:
            memento.num_holders -= 1
            if memento.num_holders == 0:
                self.num_bytes -= memento.num_bytes
                for piece in _pieces(memento):
                    piece.num_holders -= 1
                    self.num_bytes -= 0 if piece.num_holders else piece.size
                if self.latest.get(key) is memento:
                    del self.latest[key]


def _pieces(memento: Memento) -> list[MemoryPiece]:
    return memento.pieces if isinstance(memento, MemoryState) else []


def check_known(
    executions: Iterable[str], cells: Sequence[KeptCell], reasons: Mapping[str, str], words: tuple[str, str], hint: str
) -> None:
    """Raise JupyterDistError if not all executions are among these cells, with the known reason.

    `words`: what cannot be done with the cell, and what this process would have done with it.
    """
    for execution_id in set(executions).difference(cell.execution_id for cell in cells):
        done, did = words
        unknown = f"This process did not {did} it: the rank was replaced or restarted since."
        message = f"The cell cannot be {done}. {reasons.get(execution_id, unknown)}"
        raise JupyterDistError("cannot_undo", message, hint)


def obstacle_of(mementos: list[tuple[Key, Memento]]) -> str | None:
    """Return why a state cannot be written; None if all can."""
    with torch_compat.without_dispatch_modes():
        return next(filter(None, (memento.obstacle() for _, memento in mementos)), None)


def write(mementos: list[tuple[Key, Memento]]) -> list[str]:
    """Write states, phase by phase; return what failed. One failure does not keep the other objects changed."""
    changed = [memento for _, memento in mementos if memento.differs()]
    failed = []
    for memento in sorted(changed, key=lambda one: one.phase):
        try:
            memento.restore()
        except Exception as err:  # whatever an object's type raises
            failed.append(cut(f"{type(memento).__name__}: {type(err).__name__}: {err}", 200))
    for memento in changed:
        if isinstance(memento, TensorLayout):
            with contextlib.suppress(RuntimeError, TypeError):
                memento.restore_version()
    return failed


@contextlib.contextmanager
def no_collections() -> Iterator[None]:
    """Collect no garbage meanwhile: many objects are made and none become garbage, which Python would look for."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
