"""What ranks report of their steps, checked: cells can change what a rank sends."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from jupyter_dist.protocol.wire.places import is_library, name_of_file

MAX_TEXT = 200
MAX_ROWS = 64
MAX_RANKS = 8192
T = TypeVar("T")


class UserLine(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int
    code: str

    @property
    def name(self) -> str:
        """The file's name for users."""
        return name_of_file(self.file)


class Value(NamedTuple):
    """A tensor on one rank: its digest, its first element, and whether its elements differ."""

    digest: str
    first: float
    varies: bool = True


class BatchTensor(NamedTuple):
    """One tensor of a batch."""

    digest: str
    is_rich: bool
    shape: tuple[int, ...]


class Batch(NamedTuple):
    """What a model was called with."""

    digest: str
    first: float
    varies: bool
    shape: tuple[int, ...]
    place: UserLine | None
    parts: tuple[BatchTensor, ...] = ()


class Evaluation(NamedTuple):
    """Some batches in a row for which no gradients were needed."""

    is_training: bool
    is_different: bool
    num_layers: int
    num_active: int
    place: UserLine | None


class ModelCalls(NamedTuple):
    """The calls of a model before a step."""

    is_watched: bool
    outer: int
    num_synced: int
    is_synced: bool
    is_training: bool | None
    num_layers: int
    num_active: int
    batch: Batch | None
    evaluation: Evaluation | None


class Stale(NamedTuple):
    """What backward passes before a step found in a gradient."""

    passes: int
    stale: int
    fresh: int
    name: str
    value: float


class Left(NamedTuple):
    """The parameters without a gradient, and parameters that no optimizer holds."""

    held: int
    idle: int
    idle_names: tuple[str, ...]
    idle_share: float
    gone: int
    frozen: int
    unheld: tuple[str, ...]


NOTHING_LEFT = Left(0, 0, (), 0.0, 0, 0, ())


class Strangers(NamedTuple):
    """A module with gradients that no optimizer holds."""

    module: str
    number: int
    names: tuple[str, ...]


class Wrong(NamedTuple):
    """Tensors with numbers that are not finite."""

    names: tuple[str, ...]
    number: int
    of: int
    value: str


class CallFact(NamedTuple):
    """What calls of a library have shown on a rank: numbers and texts as observing/calls sends them."""

    kind: str
    key: str
    numbers: tuple[float, ...]
    texts: tuple[str, ...]
    place: UserLine | None


class Model(NamedTuple):
    """A model whose parameters an optimizer holds."""

    kind: str
    averaging: tuple[int, ...]
    replicas: tuple[int, ...]
    has_comm_hook: bool
    is_compiled: bool


class About(NamedTuple):
    """An optimizer."""

    name: str
    names: tuple[str, ...]
    models: tuple[Model, ...]


class Distributed(NamedTuple):
    """The settings of a DistributedSampler."""

    num_replicas: int
    rank: int
    epoch: int
    seed: int
    shuffle: bool
    drop_last: bool
    total_size: int


class Pass(NamedTuple):
    """A pass over a loader."""

    loader: int
    number: int
    before: int  # steps in the pass before
    trains: bool
    sampler: str
    length: int | None
    subset: str | None
    distributed: Distributed | None
    place: UserLine | None


class EndedSteps(NamedTuple):
    """The steps of an optimizer in a cell that has ended."""

    optimizer: int
    steps: int
    calls: int
    num_synced: int
    is_written: bool


@dataclass(frozen=True)
class StepLook:
    """A step of an optimizer on one rank."""

    optimizer: int
    step: int
    signature: str
    place: UserLine | None
    gradients: tuple[Value | None, ...] = ()
    weights: tuple[Value | None, ...] = ()
    settings: tuple[dict[str, Any], ...] = ()
    is_written: bool = False  # the parameters were changed by something else than the optimizer
    calls: tuple[ModelCalls, ...] = ()
    stale: Stale | None = None
    left: Left = NOTHING_LEFT
    strangers: Strangers | None = None
    gradient_wrong: Wrong | None = None
    weight_wrong: Wrong | None = None
    wrong_call: str | None = None
    about: About | None = None
    passes: tuple[Pass, ...] = ()
    idle_layers: tuple[str, ...] = ()  # called, though no gradient came back
    reduced: int = 0  # sums of single numbers before the backward pass, and no other communication


def read(kind: type[T], row: Any) -> T | None:
    """Return a row of a rank as one of the types above; None if it is none. Never raises."""
    try:
        found: T = _read(kind, row)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
        return None
    return found


def read_several(kind: type[T], rows: Any) -> list[T]:
    """Return the rows of a list that are of a type."""
    found = [read(kind, row) for row in rows[:MAX_ROWS]] if isinstance(rows, list) else []
    return [one for one in found if one is not None]


def _read(kind: Any, row: Any) -> Any:
    if kind in _READERS:
        return _READERS[kind](row)
    inner, origin = get_args(kind), get_origin(kind)
    if origin in (Union, types.UnionType):
        return None if row is None else _read(inner[0], row)
    if origin is tuple:
        return tuple(_read(inner[0], one) for one in row[: MAX_RANKS if inner[0] is int else MAX_ROWS])
    if origin is dict:
        return {_text(name): _setting(value) for name, value in list(row.items())[:MAX_ROWS]}
    hints = _hints(kind)
    if isinstance(row, list):
        row = dict(zip(hints, row, strict=False))
    return kind(**{name: _read(hint, row[name]) for name, hint in hints.items() if name in row})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _setting(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_setting(one) for one in value[:4])
    return None if value is None else _float(value)


def _place(row: Any) -> UserLine | None:
    file, line, _, code = row
    return None if is_library(_text(file)) else UserLine(_text(file), _whole(line), _text(code))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value[:MAX_TEXT]


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("not a truth value")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 62:
        raise TypeError("not a whole number")
    return value


def _float(value: Any) -> float:
    if value is None:  # not finite
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("not a number")
    return float(value) if math.isfinite(value) else math.nan


_READERS: Mapping[Any, Callable[[Any], Any]] = {UserLine: _place, str: _text, bool: _truth, int: _whole, float: _float}
