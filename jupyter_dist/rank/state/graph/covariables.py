"""Co-variables: the names of cells that share objects or memory, which are written and read together."""

from __future__ import annotations

import graphlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from jupyter_dist.rank.state.process import beside
from jupyter_dist.rank.state.process.modules.values import PLAIN

from .pickling import NamespaceOfCells, Stream, StreamSpace, is_shared, write

# ("name", a name), ("result", a number of Out), ("process", what is beside the names) or ("definition", its number)
Root = tuple[str, Any]


@dataclass
class Covariable:
    """Names, results and definitions that are written into one stream.

    Attributes:
        roots: what is in the stream.
        stream: what was written, or why it cannot be.
        needs: other co-variables whose definitions this stream names: they are read before.
    """

    roots: list[Root]
    stream: Stream
    needs: list[Covariable] = field(default_factory=list)

    def of(self, kind: str) -> list[Any]:
        """Return the names, results or definitions."""
        return [key for one, key in self.roots if one == kind]


_SHARES = "shared objects with '{}', which is not saved, and has none of them after a restore"


class _Sets:
    """Sets of keys that are joined one by one."""

    def __init__(self) -> None:
        self._above: dict[Hashable, Hashable] = {}

    def find(self, key: Hashable) -> Hashable:
        above = self._above.setdefault(key, key)
        while above != key:
            self._above[key] = self._above[above]
            key, above = self._above[key], self._above[self._above[key]]
        return key

    def join(self, key: Hashable, other: Hashable) -> None:
        self._above[self.find(key)] = self.find(other)


@dataclass
class CovariableGraph:
    """What is written, in the order in which it can be read.

    Attributes:
        covariables: that can be written.
        failed: the roots that cannot be written, with the error.
    """

    covariables: list[Covariable]
    failed: dict[Root, BaseException]


def find(values: dict[Root, Any], space: StreamSpace, *, joins_plain: bool = False) -> CovariableGraph:
    """Write all values, and return the co-variables that they form.

    Args:
        values: the values.
        space: what their streams share.
        joins_plain: Whether one stream has all numbers and texts, of which nothing can fail: that takes less time.
    """
    plain = [root for root, value in values.items() if _is_plain(root, value)] if joins_plain else []
    if not plain:
        return _find(values, space)
    together = Covariable(plain, write_together(plain, values, space))
    found = _find({root: value for root, value in values.items() if root not in frozenset(plain)}, space)
    return CovariableGraph([together, *found.covariables], found.failed)


def _is_plain(root: Root, value: Any) -> bool:
    """Whether a value is a number or a text, or a container of them that this package has made."""
    return type(value) in PLAIN or (root[0] == "process" and beside.is_made(root[1]) and _is_plain_inside(value))


def _is_plain_inside(value: Any) -> bool:
    if type(value) is dict:
        return all(map(_is_plain_inside, (*value, *value.values())))
    return type(value) in PLAIN or (type(value) in (list, tuple) and all(map(_is_plain_inside, value)))


def _find(values: dict[Root, Any], space: StreamSpace) -> CovariableGraph:
    streams, failed, lost = _write_alone(values, space)
    sets = _join(streams, space)
    groups: dict[Hashable, list[Root]] = {}
    for root in streams:
        groups.setdefault(sets.find(root), []).append(root)
    order, groups = _ordered(sets, groups, streams, space)
    found: dict[Hashable, Covariable] = {}
    for key in order:
        roots = groups[key]
        needs = _needs(sets, roots, streams, space) - {key}
        missing = next((one for one in needs if one not in found), None)
        stream = streams[roots[0]] if len(roots) == 1 else write_together(roots, values, space)
        error = stream.error or (None if missing is None else _cannot_be_read_without(missing, space))
        if error is not None:
            failed.update(dict.fromkeys(roots, error))
            continue
        stream.notes |= {_SHARES.format(lost[one][0]) for one in stream.shared.keys() & lost.keys()}
        found[key] = Covariable(roots, stream, [found[one] for one in needs])
    return CovariableGraph(list(found.values()), failed)


def _write_alone(
    values: dict[Root, Any], space: StreamSpace
) -> tuple[dict[Root, Stream], dict[Root, BaseException], dict[int, tuple[str, Any]]]:
    """Write each value, and each definition that they need, by itself.

    Returns:
        The streams; the errors of values that cannot be written; and the names of these values with their objects, by
        the ids of these, which no other objects get meanwhile.
    """
    streams: dict[Root, Stream] = {}
    failed: dict[Root, BaseException] = {}
    lost: dict[int, tuple[str, Any]] = {}
    for root, value in values.items():
        streams[root] = write(_content([root], values, space), space)
        if is_shared(value, is_named=True) and value is not space.namespace:
            streams[root].shared[id(value)] = value
    number = 0
    while number < len(space.definitions.objects):  # grows meanwhile
        if space.definitions.parents[number] == number:
            root = ("definition", number)
            streams[root] = write(_content([root], values, space), space, _own([root], space))
        number += 1
    for root, stream in list(streams.items()):
        if stream.error is not None:
            failed[root] = stream.error
            del streams[root]
            if root[0] == "name":
                lost.update({key: (str(root[1]), one) for key, one in stream.shared.items()})
    return streams, failed, lost


def write_together(roots: list[Root], values: dict[Root, Any], space: StreamSpace) -> Stream:
    """Write these values, or definitions, into one stream."""
    return write(_content(roots, values, space), space, _own(roots, space))


def _content(roots: Iterable[Root], values: dict[Root, Any], space: StreamSpace) -> dict[str, dict[Any, Any]]:
    """Return the content of the stream of these roots: the values by kind and key."""
    content: dict[str, dict[Any, Any]] = {"name": {}, "result": {}, "process": {}, "definition": {}}
    for kind, key in roots:
        if kind == "definition":
            own = _own([(kind, key)], space)
            content[kind].update({number: space.definitions.objects[number] for number in sorted(own)})
        else:
            value = values[kind, key]
            content[kind][key] = NamespaceOfCells() if value is space.namespace else value
    return content


def _own(roots: Iterable[Root], space: StreamSpace) -> frozenset[int]:
    """Return the numbers of these definitions, and of their methods."""
    wanted = {key for kind, key in roots if kind == "definition"}
    return frozenset(number for number, parent in enumerate(space.definitions.parents) if parent in wanted)


def _join(streams: dict[Root, Stream], space: StreamSpace) -> _Sets:
    """Join the roots that share objects or memory."""
    sets = _Sets()
    first: dict[int, Root] = {}  # by the id of the object; memories have negative numbers
    memory_of = {block: number for number, memory in enumerate(space.memory.memories()) for block in memory.blocks}
    for root, stream in streams.items():
        sets.find(root)
        for key in (*stream.shared, *(-1 - memory_of[one] for one in stream.blocks)):
            if (other := first.setdefault(key, root)) is not root:
                sets.join(root, other)
    return sets


def _needs(sets: _Sets, roots: list[Root], streams: dict[Root, Stream], space: StreamSpace) -> set[Hashable]:
    """Return the sets whose definitions these roots name."""
    numbers = {number for root in roots for number in streams[root].needs}
    return {sets.find(("definition", space.definitions.parents[number])) for number in numbers}


def _ordered(
    sets: _Sets, groups: dict[Hashable, list[Root]], streams: dict[Root, Stream], space: StreamSpace
) -> tuple[list[Hashable], dict[Hashable, list[Root]]]:
    """Return the sets in the order in which they can be read; sets that need each other become one."""
    while True:
        needs = {key: _needs(sets, roots, streams, space) - {key} for key, roots in groups.items()}
        if not any(needs.values()):
            return list(groups), groups
        try:
            order = list(graphlib.TopologicalSorter(needs).static_order())
        except graphlib.CycleError as err:
            circle = err.args[1]
            for key in circle[1:]:
                sets.join(circle[0], key)
            joined: dict[Hashable, list[Root]] = {}
            for key, roots in groups.items():
                joined.setdefault(sets.find(key), []).extend(roots)
            groups = joined
        else:
            return [key for key in order if key in groups], groups


def _cannot_be_read_without(missing: Hashable, space: StreamSpace) -> BaseException:
    assert isinstance(missing, tuple)
    kind, key = missing
    name = space.definitions.name_of(key) if kind == "definition" else key
    return TypeError(f"it needs {name}, which cannot be saved")
