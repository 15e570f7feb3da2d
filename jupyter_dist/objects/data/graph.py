"""The closed format: a description in JSON of the objects, each with its kind, and the bytes of large ones beside it.

An object refers to others by their number, so that containers can share objects and contain themselves. The reader
knows the kinds, and each is made by a function of ours. Nothing in the description names a function, or a class that
the user has not allowed (allowed.py).
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

MARK = b'{"jupyter_dist": 1, '
MAX_DESCRIPTION_BYTES = 256 << 20  # as objects of Python, this is several GiB
MAX_DEPTH = 100  # of what is made at once: Python hashes and frees such objects with a C stack
MAX_INLINE_BYTES = 512  # smaller than what a buffer costs
MAX_INT_BITS = 2048  # larger ones are written in hex, which takes linear time
MAX_ALIKE = 1 << 22  # objects that are made by tables, in all

Item = Any  # None, a bool, a number, a text; or [n], the object with this number
_MIN_ROW = 16
_BETWEEN = "\x7f"  # JSON needs no escape for it
_DIRECT = frozenset({float, str, bool, type(None)})
_SCALARS = _DIRECT | {int}
_ALIKE = {dict, list, tuple}
_TABLE = "table"  # a node for many containers: see DataWriter._table
_MAKERS: dict[str, Callable[[Any, Any], Iterator[Any]]] = {
    "dict": lambda keys, rows: (dict(zip(keys, row, strict=True)) for row in rows),
    "list": lambda _, rows: map(list, rows),
    "tuple": lambda _, rows: rows,
}


class NotDataError(Exception):
    """An object has no kind, or what was sent is none of the format; the text names the type or the fault."""


@dataclass(frozen=True)
class ObjectKind:
    """How objects of a type are written and made.

    `parts` returns what describes an object; `make` gets this and returns the object. A container that can contain
    itself is made empty, and `fill` gets the same when all objects exist.
    """

    name: str
    parts: Callable[[DataWriter, Any], list[Any]]
    make: Callable[..., Any]
    fill: Callable[..., None] | None = None


class DataWriter:
    """One object and all that it refers to, while they are described."""

    def __init__(self, kind_of: Callable[[Any], ObjectKind], stages: bool = False) -> None:
        self.stages = stages  # leave large tensors on their device (staging.py)
        self.buffers: list[memoryview] = []
        self._kind_of = kind_of
        self._nodes: list[Any] = []
        self._numbers: dict[Any, int | None] = {}  # by identity; None while the object is described
        self._kept: list[Any] = []  # so that no identity is used twice
        self._unfilled: list[tuple[int, ObjectKind, Any]] = []
        self._count = 0  # of objects: a table is one node for many
        self._alike = 0
        self._depth = 0

    def pieces(self, value: Any) -> list[memoryview]:
        """Return the description and the buffers. Raises NotDataError."""
        item = self.item(value)
        while self._unfilled:
            place, kind, container = self._unfilled.pop()
            self._nodes[place] = [kind.name, *kind.parts(self, container)]
        content = f'"value": {json.dumps(item)}, "nodes": {json.dumps(self._nodes, ensure_ascii=False)}}}'
        description = MARK + content.encode("utf-8", "surrogatepass")
        if len(description) > MAX_DESCRIPTION_BYTES:
            raise NotDataError(f"{len(self._nodes)} objects, {len(description)} bytes without their arrays")
        return [memoryview(description), *self.buffers]

    def item(self, value: Any) -> Item:
        """Describe an object where another one has it."""
        kind = type(value)
        if kind in _DIRECT or (kind is int and value.bit_length() <= MAX_INT_BITS):
            return value
        return [self._number(value)]

    def each(self, *values: Any) -> list[Item]:
        """Describe a few objects one by one."""
        return [self.item(value) for value in values]

    def items(self, values: Sequence[Any]) -> list[Item] | dict[str, Any]:
        """Describe several objects: one by one, or a long row of numbers, texts or like containers as a whole."""
        if len(values) >= _MIN_ROW:
            kinds = set(map(type, values))
            is_table = len(kinds) == 1 and kinds <= _ALIKE
            row = self._table(kinds.pop(), values) if is_table else self._row(kinds, values)
            if row is not None:
                return row
        item = self.item
        return [value if type(value) in _DIRECT else item(value) for value in values]

    def _table(self, kind: type, values: Sequence[Any]) -> dict[str, Any] | None:
        """Describe new containers of as many numbers and texts by columns: one node, whose objects are numbered on."""
        keys, names = list(values[0]) if kind is dict else None, set(map(id, values))
        is_new = len(names) == len(values) and self._numbers.keys().isdisjoint(names)
        if not is_new or len(set(map(len, values))) > 1 or self._alike + len(values) > MAX_ALIKE:
            return None
        if keys is not None and not ({*map(type, keys)} == {str} and all(list(value) == keys for value in values)):
            return None
        columns = list(zip(*(value.values() for value in values) if kind is dict else values, strict=True))
        if not columns or not all(_SCALARS.issuperset(map(type, column)) for column in columns):
            return None
        described = [self.items(column) for column in columns]
        first, self._count, self._alike = self._count, self._count + len(values), self._alike + len(values)
        self._nodes.append([_TABLE, kind.__name__, keys, described])
        self._kept.append(values)
        self._numbers.update(zip(map(id, values), range(first, self._count), strict=True))
        return {"r": [first, len(values)]}

    def _row(self, kinds: set[type], values: Sequence[Any]) -> dict[str, Any] | None:
        if kinds == {str}:
            row = _BETWEEN.join(values)
            return {"s": row} if row.count(_BETWEEN) == len(values) - 1 else None
        code = "d" if kinds == {float} else "q" if kinds == {int} else ""
        try:
            return {code: self.data(memoryview(array(code, values)).cast("B"))} if code else None
        except OverflowError:
            return None

    def once(self, key: Any, kind: ObjectKind, value: Any) -> Item:
        """Describe an object that is the same as all with this key."""
        if self._numbers.get(key) is None:
            self._kept.append(value)
            self._numbers[key] = self._described(kind, value)
        return [self._numbers[key]]

    def data(self, view: memoryview) -> int | str:
        """Place bytes in the description, as a text, or in a buffer."""
        if view.nbytes <= MAX_INLINE_BYTES:
            return view.tobytes().decode("latin-1")
        self.buffers.append(view)
        return len(self.buffers) - 1

    def _number(self, value: Any) -> int:
        key = id(value)
        if key in self._numbers:
            if (number := self._numbers[key]) is None:
                raise NotDataError(f"a {type(value).__name__} that contains itself")
            return number
        kind = self._kind_of(value)
        self._kept.append(value)
        if kind.fill is not None:
            self._unfilled.append((len(self._nodes), kind, value))
            self._nodes.append(None)
            self._numbers[key] = number = self._new_number()
            return number
        self._numbers[key] = None
        self._numbers[key] = number = self._described(kind, value)
        return number

    def _described(self, kind: ObjectKind, value: Any) -> int:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NotDataError(f"objects in objects, more than {MAX_DEPTH} deep")
        node = [kind.name, *kind.parts(self, value)]
        self._depth -= 1
        self._nodes.append(node)
        return self._new_number()

    def _new_number(self) -> int:
        self._count += 1
        return self._count - 1


class DataReader:
    """Makes the objects of a description that comes from another machine."""

    def __init__(self, kind_named: Callable[[str], ObjectKind], pieces: Sequence[memoryview]) -> None:
        self._kind_named = kind_named
        self._buffers: list[memoryview | None] = list(pieces[1:])
        self._made: list[Any] = []
        self._depths: list[int] = []
        self._deepest = 0
        self._alike = 0
        self._description = pieces[0]

    def value(self) -> Any:
        """Return the object. Raises NotDataError; and what the functions of Python, NumPy and so on raise."""
        if self._description.nbytes > MAX_DESCRIPTION_BYTES:
            raise NotDataError(f"a description of {self._description.nbytes} bytes")
        content = json.loads(bytes(self._description).decode("utf-8", "surrogatepass"))
        unfilled = []
        for name, *parts in content["nodes"]:
            if name == _TABLE:
                self._make_table(*parts)
                continue
            kind = self._kind_named(name)
            self._deepest = 0
            made = kind.make(self, *parts)
            self._made.append(made)
            if kind.fill is None:
                self._depths.append(self._deepest + 1)
            else:
                self._depths.append(0)
                unfilled.append((kind.fill, made, parts))
        for fill, made, parts in unfilled:
            fill(self, made, *parts)
        return self.at(content["value"])

    def at(self, item: Item) -> Any:
        """Return the object for which this stands."""
        if type(item) in _SCALARS:
            return item
        if type(item) is not list or len(item) != 1:
            raise NotDataError("a reference that is none")
        number = whole(item[0], 0, len(self._made) - 1)
        self._deepen(self._depths[number])
        return self._made[number]

    def _deepen(self, depth: int) -> None:
        self._deepest = max(self._deepest, depth)
        if self._deepest >= MAX_DEPTH:
            raise NotDataError(f"objects in objects, more than {MAX_DEPTH} deep")

    def all(self, items: Any) -> list[Any]:
        """Return the objects for which these stand."""
        if type(items) is dict:
            ((code, row),) = items.items()
            return text(row).split(_BETWEEN) if code == "s" else self._row(code, row)
        if type(items) is not list:
            raise NotDataError("no list of objects")
        at = self.at
        return [item if type(item) in _SCALARS else at(item) for item in items]

    def _make_table(self, name: Any, keys: Any, columns: Any) -> None:
        if type(columns) is not list or not columns or text(name) not in _MAKERS:
            raise NotDataError("a table of no columns")
        if name == "dict" and not (type(keys) is list and len(set(map(text, keys))) == len(keys) == len(columns)):
            raise NotDataError("a table whose columns have no names")
        found = [self.all(column) for column in columns]
        if not all(_SCALARS.issuperset(map(type, column)) for column in found):
            raise NotDataError("a table of objects")
        self._alike += len(found[0])
        if self._alike > MAX_ALIKE:
            raise NotDataError(f"{self._alike} objects in tables")
        made = list(_MAKERS[name](keys, zip(*found, strict=True)))
        self._made += made
        self._depths += [int(name == "tuple")] * len(made)

    def _row(self, code: str, place: Any) -> list[Any]:
        if code == "r":
            first, count = wholes(place, 0, 2)
            if first + count > len(self._made):
                raise NotDataError("a row of objects that are not there")
            self._deepen(max(self._depths[first : first + count], default=0))
            return self._made[first : first + count]
        if code not in ("d", "q"):
            raise NotDataError("a row of neither numbers nor texts")
        row = array(code)
        row.frombytes(self.data(place))
        return row.tolist()

    def exact(self, item: Item, *types: type) -> Any:
        """Return the object, which must be of one of these types and no other."""
        found = self.at(item)
        if type(found) not in types:
            raise NotDataError(f"a {type(found).__name__} where a {types[0].__name__} belongs")
        return found

    def data(self, place: Any) -> memoryview:
        """Return bytes, which can be written. No two objects get the same ones."""
        if type(place) is str:
            return memoryview(bytearray(place.encode("latin-1")))
        number = whole(place, 0, len(self._buffers) - 1)
        found, self._buffers[number] = self._buffers[number], None
        if found is None:
            raise NotDataError("two objects with the same bytes")
        return found


def text(value: Any) -> str:
    """Return a text of the description."""
    if type(value) is not str:
        raise NotDataError(f"a {type(value).__name__} where a text belongs")
    return value


def flag(value: Any) -> bool:
    """Return a truth value of the description."""
    if type(value) is not bool:
        raise NotDataError(f"a {type(value).__name__} where a bool belongs")
    return value


def whole(value: Any, least: int = -(1 << 63), most: int = (1 << 63) - 1) -> int:
    """Return a whole number of the description, in a range."""
    if type(value) is not int or not least <= value <= most:
        raise NotDataError(f"{value!r:.40} where a number of {least} to {most} belongs")
    return value


def wholes(values: Any, least: int = -(1 << 63), max_count: int = 64) -> tuple[int, ...]:
    """Return a short row of whole numbers, such as a shape."""
    if type(values) is not list or len(values) > max_count:
        raise NotDataError("no row of numbers")
    return tuple(whole(value, least) for value in values)
