"""Reading of the rows that ranks send, as types: cells can change what a rank sends."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from jupyter_dist.protocol.wire.places import describe_line, is_library, name_of_file

if TYPE_CHECKING:
    from jupyter_dist.protocol.models.models import CodeLine

MAX_TEXT = 300
MAX_ROWS = 64
MAX_NUMBERS = 8192
MAX_NUMBER = 1 << 62
T = TypeVar("T")


class CodePlace(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int
    function: str
    code: str

    def __str__(self) -> str:
        return describe_line(self.file, self.line, self.code)

    @property
    def name(self) -> str:
        """The file's name for users."""
        return name_of_file(self.file)

    def model(self) -> CodeLine:
        """Return the CodeLine of docs/api.md."""
        return {"file": self.file, "name": self.name, "line": self.line, "code": self.code}


def read(kind: type[T], row: Any) -> T | None:
    """Return a row as a named tuple or dataclass of simple types; None if it is none. Never raises."""
    try:
        return parse(kind, row)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
        return None


def read_several(kind: type[T], rows: Any) -> list[T]:
    """Return the rows of a list that are of a type."""
    found = [read(kind, row) for row in rows[:MAX_ROWS]] if isinstance(rows, list) else []
    return [one for one in found if one is not None]


def parse(kind: type[T], row: Any) -> T:
    """Return a row, a dictionary or a list, as a type. Raises usual errors of Python for what is none."""
    found: T = _parse(kind, row)
    return found


def _parse(kind: Any, row: Any) -> Any:
    if kind in _READERS:
        return _READERS[kind](row)
    inner, origin = get_args(kind), get_origin(kind)
    if origin in (Union, types.UnionType):
        return None if row is None else _parse(inner[0], row)
    if origin is tuple:
        return tuple(_parse(inner[0], one) for one in row[: MAX_NUMBERS if inner[0] is int else MAX_ROWS])
    if origin is dict:
        return {_text(name): _setting(value) for name, value in list(row.items())[:MAX_ROWS]}
    hints = _hints(kind)
    if isinstance(row, list | tuple):
        row = dict(zip(hints, row, strict=False))
    return kind(**{name: _parse(hint, row[name]) for name, hint in hints.items() if name in row})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _setting(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_setting(one) for one in value[:4])
    return None if value is None else _float(value)


def _place(row: Any) -> CodePlace | None:
    file, line, function, code = row
    return None if is_library(_text(file)) else CodePlace(_text(file), _whole(line), _text(function), _text(code))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value[:MAX_TEXT]


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("not a truth value")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= MAX_NUMBER:
        raise TypeError("not a whole number")
    return value


def _float(value: Any) -> float:
    if value is None:  # not finite
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("not a number")
    return float(value) if math.isfinite(value) else math.nan


_READERS: Mapping[Any, Callable[[Any], Any]] = {CodePlace: _place, str: _text, bool: _truth, int: _whole, float: _float}
