"""What ranks report of their steps, checked: cells can change what a rank sends."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

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


class Batch(NamedTuple):
    """What a model was called with."""

    digest: str
    first: float
    varies: bool
    shape: tuple[int, ...]
    place: UserLine | None


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
    unheld: tuple[str, ...]


NOTHING_LEFT = Left(0, 0, (), 0.0, 0, ())


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
    settings: tuple[Mapping[str, Any], ...] = ()
    is_written: bool = False  # the parameters were changed by something else than the optimizer
    calls: tuple[ModelCalls, ...] = ()
    stale: Stale | None = None
    left: Left = NOTHING_LEFT
    strangers: Strangers | None = None
    gradient_wrong: Wrong | None = None
    weight_wrong: Wrong | None = None
    wrong_call: str | None = None
    about: About | None = None
    passes: tuple[Pass, ...] = field(default=())


def read_look(row: Mapping[str, Any]) -> StepLook | None:
    """Return a look that a rank has sent; None if it is none. Never raises for what a rank sends."""
    return _read(_look, row)


def read_end(content: Mapping[str, Any]) -> tuple[list[EndedSteps], list[Pass], list[Evaluation]]:
    """Return the rest of the reports, which came with the end of a cell. Never raises for what a rank sends."""
    return (
        _several(_ended, content.get("ended")),
        _several(_pass, content.get("passes")),
        _several(_evaluation, content.get("evaluations")),
    )


def _several(make: Callable[[Any], T], rows: Any) -> list[T]:
    found = [_read(make, row) for row in rows[:MAX_ROWS]] if isinstance(rows, list) else []
    return [one for one in found if one is not None]


def _read(make: Callable[[Any], T], row: Any) -> T | None:
    try:
        return make(row)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
        return None


def _look(row: Mapping[str, Any]) -> StepLook:
    finite = row["finite"] or {}
    return StepLook(
        optimizer=_whole(row["optimizer"]),
        step=_whole(row["step"]),
        signature=_text(row["signature"]),
        place=_place(row["line"]),
        gradients=tuple(_maybe(_value, one) for one in row["gradients"][:MAX_ROWS]),
        weights=tuple(_maybe(_value, one) for one in row["weights"][:MAX_ROWS]),
        settings=tuple(_settings(one) for one in row["settings"][:MAX_ROWS]),
        is_written=row["written"] is True,
        calls=tuple(_calls(one) for one in row["calls"][:MAX_ROWS]),
        stale=_maybe(_stale, row["stale"]),
        left=_left(row["left"]),
        strangers=_maybe(_strangers, row.get("strangers")),
        gradient_wrong=_maybe(_wrong, finite.get("gradient")),
        weight_wrong=_maybe(_wrong, finite.get("weight")),
        wrong_call=_maybe(_text, finite.get("call")),
        about=_maybe(_about, row.get("about")),
        passes=tuple(_pass(one) for one in row["passes"][:MAX_ROWS]),
    )


def _maybe(make: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else make(value)


def _value(row: Any) -> Value:
    return Value(_text(row[0]), _float(row[1]), bool(row[2]) if len(row) > 2 else True)


def _settings(row: Mapping[str, Any]) -> dict[str, Any]:
    return {_text(name): _setting(value) for name, value in list(row.items())[:MAX_ROWS]}


def _setting(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_setting(one) for one in value[:4])
    return None if value is None else _float(value)


def _calls(row: Mapping[str, Any]) -> ModelCalls:
    training = row["training"]
    return ModelCalls(
        row["watched"] is True,
        _whole(row["outer"]),
        _whole(row["synced"]),
        row["is_synced"] is True,
        None if training is None else training is True,
        _whole(row.get("layers", 0)),
        _whole(row.get("active", 0)),
        _maybe(_batch, row["batch"]),
        _maybe(_evaluation, row["evaluation"]),
    )


def _batch(row: Mapping[str, Any]) -> Batch:
    shape = tuple(_whole(size) for size in row["shape"][:8])
    return Batch(_text(row["digest"]), _float(row["first"]), row["varies"] is True, shape, _place(row["line"]))


def _evaluation(row: Mapping[str, Any]) -> Evaluation:
    return Evaluation(
        row["training"] is True,
        row["different"] is True,
        _whole(row["norms"]),
        _whole(row["active_norms"]),
        _place(row["line"]),
    )


def _stale(row: Mapping[str, Any]) -> Stale:
    return Stale(
        _whole(row["passes"]), _whole(row["stale"]), _whole(row["fresh"]), _text(row["name"]), _float(row["value"])
    )


def _left(row: Mapping[str, Any]) -> Left:
    return Left(
        _whole(row["held"]),
        _whole(row["idle"]),
        _texts(row["idle_names"]),
        _float(row["idle_share"]),
        _whole(row["gone"]),
        _texts(row["unheld"]),
    )


def _strangers(row: Mapping[str, Any]) -> Strangers:
    return Strangers(_text(row["module"]), _whole(row["number"]), _texts(row["names"]))


def _wrong(row: Mapping[str, Any]) -> Wrong:
    return Wrong(_texts(row["names"]), _whole(row["number"]), _whole(row["of"]), _text(row["value"]))


def _about(row: Mapping[str, Any]) -> About:
    models = tuple(
        Model(
            _text(one["kind"]),
            _ranks(one["averaging"]),
            _ranks(one["replicas"]),
            one["has_comm_hook"] is True,
            one["is_compiled"] is True,
        )
        for one in row["models"][:MAX_ROWS]
    )
    return About(_text(row["name"]), _texts(row["names"]), models)


def _pass(row: Mapping[str, Any]) -> Pass:
    told = row.get("distributed")
    length, subset = row["length"], row["subset"]
    return Pass(
        _whole(row["loader"]),
        _whole(row["pass"]),
        _whole(row["before"]),
        row["trains"] is True,
        _text(row["sampler"]),
        None if length is None else _whole(length),
        None if subset is None else _text(subset),
        None if told is None else _distributed(told),
        _place(row["line"]),
    )


def _distributed(row: Mapping[str, Any]) -> Distributed:
    return Distributed(
        _whole(row["num_replicas"]),
        _whole(row["rank"]),
        _whole(row["epoch"]),
        _whole(row["seed"]),
        bool(row["shuffle"]),
        bool(row["drop_last"]),
        _whole(row["total_size"]),
    )


def _ended(row: Mapping[str, Any]) -> EndedSteps:
    return EndedSteps(
        _whole(row["optimizer"]),
        _whole(row["steps"]),
        _whole(row["calls"]),
        _whole(row["synced"]),
        row["written"] is True,
    )


def _place(row: Any) -> UserLine | None:
    if row is None:
        return None
    file, line, _, code = row
    return None if is_library(_text(file)) else UserLine(_text(file), _whole(line), _text(code))


def _ranks(row: Any) -> tuple[int, ...]:
    return tuple(_whole(rank) for rank in row[:MAX_RANKS])


def _texts(row: Any) -> tuple[str, ...]:
    return tuple(_text(one) for one in row[:MAX_ROWS])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value[:MAX_TEXT]


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
