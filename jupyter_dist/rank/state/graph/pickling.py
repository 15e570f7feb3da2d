"""Writes a value into a stream, in which memory and definitions are named: they are written elsewhere."""

from __future__ import annotations

import decimal
import enum
import pickle
import pickletools
import sys
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import torch
from IPython.core.getipython import get_ipython

from jupyter_dist.rank.state.process import groups
from jupyter_dist.rank.state.process.modules import library
from jupyter_dist.rank.state.process.modules.library import ProcessObjects, note_on

from . import marks, special
from .definitions import SharedDefinitions
from .dropped import DroppedAttributes, inherits_pickling
from .memory import MemoryTable
from .tensors import TensorReducer

CALLS_USER_CODE = True  # methods such as __reduce__
INTERRUPTIBLE = True

_DEEP = 200_000  # nested calls of the slow pickler
_DEEP_STACK_BYTES = 512 << 20
_STOP_SECONDS = 1.0
LARGE_BYTES = 256 << 10  # of a text, or bytes, kept as a part
PART_BYTES = 4 << 20  # of the rest


class NamespaceOfCells:
    """Stands for the namespace of cells where a variable is that (`names = globals()`)."""


class SharedKinds(dict[type, bool]):
    """Whether users can notice that two names share an object of a class, which no name refers to directly."""

    def __missing__(self, kind: type) -> bool:
        """Find out about a class."""
        self[kind] = kind not in (tuple, frozenset) and _is_shared_kind(kind)
        return self[kind]


@dataclass
class StreamSpace:
    """What all streams of a rank share."""

    namespace: dict[str, Any]
    main_module: types.ModuleType
    definitions: SharedDefinitions
    memory: MemoryTable
    hides: Callable[[Any], Any] | None = None  # returns what to write instead of an object; None: the object
    library: ProcessObjects = field(default_factory=ProcessObjects)
    ways: dict[type, Way] = field(default_factory=dict)  # how to reduce objects of a class
    shares: SharedKinds = field(default_factory=SharedKinds)
    trying: set[int] = field(default_factory=set)  # the ids of parts that are being tried


@dataclass
class Stream:
    """A value as bytes.

    Attributes:
        parts: the bytes, in order; a large one is the value's own memory.
        shared: the objects in it that other values may share, by their id.
        needs: the numbers of the definitions that it names.
        blocks: the numbers of the blocks of memory that it names.
        notes: what of the value is not written.
        living: the ids of objects that it refers to by name, such as process groups: a reader finds them there.
        error: why the value cannot be written; then the rest is what was seen of it.
    """

    parts: list[bytes | bytearray] = field(default_factory=list)
    shared: dict[int, Any] = field(default_factory=dict)
    needs: set[int] = field(default_factory=set)
    blocks: set[int] = field(default_factory=set)
    notes: set[str] = field(default_factory=set)
    living: set[int] = field(default_factory=set)
    error: BaseException | None = None

    @property
    def num_bytes(self) -> int:
        """The length of the stream."""
        return sum(map(len, self.parts))


def write(value: Any, space: StreamSpace, own: frozenset[int] = frozenset()) -> Stream:
    """Write a value into a stream; never raises for what the value is.

    Args:
        value: the value.
        space: what the streams of a rank share.
        own: the numbers of the definitions that the stream contains, and does not name.
    """
    stream = Stream()
    pickler = _dump(value, space, own, stream, _StreamPickler)
    if isinstance(stream.error, RecursionError):
        stream = Stream()
        pickler = _dump(value, space, own, stream, _DeepPickler)
    shares, living = space.shares, stream.living
    stream.shared = {
        key: one for key, (_, one) in pickler.memo.copy().items() if shares[type(one)] and key not in living
    }
    if stream.error is None and (name := _refers_to_cells(stream)) is not None:
        stream.error = pickle.PicklingError(f"it holds '{name}', of a kind that cannot be pickled")
    elif id(space.namespace) in stream.shared:
        stream.error = pickle.PicklingError("it holds globals(), which are all names of cells")
    return stream


_Kind = type["_StreamPickler"] | type["_DeepPickler"]


def _dump(
    value: Any, space: StreamSpace, own: frozenset[int], stream: Stream, kind: _Kind
) -> _StreamPickler | _DeepPickler:
    reducer = _Reducer(space, own, stream)
    pickler = kind(_Sink(stream.parts), reducer)
    try:
        pickler.dump(value)
    except KeyboardInterrupt:
        raise
    except BaseException as err:  # from the user's methods, which may raise anything
        stream.error = err.with_traceback(None)  # whose frames would keep the user's objects
    return pickler


def is_shared(value: Any, *, is_named: bool = False) -> bool:
    """Whether users can notice that two names share this object.

    Args:
        value: the object.
        is_named: Whether names refer to it directly, so that `a is b` can be asked.
    """
    kind = type(value)
    return is_named and len(value) > 0 if kind in (tuple, frozenset) else _is_shared_kind(kind)


def _is_shared_kind(kind: type) -> bool:
    return not (kind in _UNSHARED or issubclass(kind, (type, enum.Enum)))


class _Sink:
    """Collects the output of a pickler in parts; large texts and bytes are not copied."""

    def __init__(self, parts: list[bytes | bytearray]) -> None:
        self._parts = parts
        self._open: bytearray | None = None

    def write(self, data: bytes) -> int:
        if len(data) >= LARGE_BYTES:
            self._parts.append(data)
            self._open = None
        elif self._open is not None and len(self._open) < PART_BYTES:
            self._open += data
        else:
            self._open = bytearray(data)
            self._parts.append(self._open)
        return len(data)


def make_space(namespace: dict[str, Any], main_module: types.ModuleType) -> StreamSpace:
    """Return a new space."""
    return StreamSpace(namespace, main_module, SharedDefinitions(namespace), MemoryTable())


class _Reducer:
    """Decides for each object whether it is written as pickle does, or in another way."""

    def __init__(self, space: StreamSpace, own: frozenset[int], stream: Stream) -> None:
        self._space = space
        self._own = own
        self._stream = stream
        self._hides = space.hides
        self._ways = space.ways
        self.tensors = TensorReducer(space.memory)
        stream.blocks, stream.notes = self.tensors.blocks, self.tensors.notes

    def reduce(self, value: Any) -> Any:
        """Reduce a value that is no plain list, dict, number, text and the like."""
        reduced = None if self._hides is None else self._hides(value)
        if reduced is None:
            kind = type(value)
            way = self._ways.get(kind)
            if way is None:
                way = self._ways[kind] = self._way_of(kind)
            reduced = way(self, value)
        if reduced is not NotImplemented and _is_living(reduced):
            self._stream.living.add(id(value))
        return reduced

    def _way_of(self, kind: type) -> Way:
        """Return how to reduce objects of a class, which is found out once: there may be millions of them."""
        if (way := _WAYS.get(kind)) is not None:
            return way
        if issubclass(kind, type):
            return _Reducer._reduce_definition
        if groups.is_mesh(kind):
            return _Reducer._reduce_mesh
        if (of_tensors := TensorReducer.way_of(kind)) is not None:
            return lambda reducer, value: of_tensors(reducer.tensors, value)
        reduce = special.reducer_of(kind)
        drops = inherits_pickling(kind)
        if kind not in special.REDUCERS and (drops or self._space.library.may_have(kind)):
            return lambda reducer, value: reducer._reduce_other(value, reduce, drops)
        return _leave if reduce is None else lambda _, value: reduce(value)

    def _reduce_mesh(self, mesh: Any) -> Any:
        number = self._space.definitions.number_of_mesh(mesh)
        return NotImplemented if number in self._own else self._named(number)

    def _reduce_other(self, value: Any, reduce: special.Reducer | None, drops: bool) -> Any:
        if (place := self._space.library.place_of(value)) is not None:
            self._stream.notes.update(filter(None, (note_on(value, place),)))
        if (reduced := library.reduce(value, place)) is not None:
            return reduced
        reduced = NotImplemented if reduce is None else reduce(value)
        if reduced is not NotImplemented or not drops:
            return reduced
        return DroppedAttributes(self._can_be_written, self._stream.notes).reduce(value, type(value))

    def _can_be_written(self, value: Any) -> bool:
        """Whether a part can be written by itself; if not, its class leaves it out, and the rest is written."""
        space = self._space
        if id(value) in space.trying:
            return True
        space.trying.add(id(value))
        try:
            alone = make_space(space.namespace, space.main_module)
            alone.hides, alone.trying = space.hides, space.trying
            alone.library, alone.ways, alone.shares = space.library, space.ways, space.shares
            return write(value, alone).error is None
        finally:
            space.trying.discard(id(value))

    def _reduce_definition(self, value: Any) -> Any:
        number = self._space.definitions.number_of(value)
        if number is None:
            return self._space.definitions.by_name(value)
        return self._space.definitions.reduce(value) if number in self._own else self._named(number)

    def _reduce_cell(self, cell: types.CellType) -> Any:
        return self._space.definitions.reduce_cell(cell)

    def _named(self, number: int) -> Any:
        self._stream.needs.add(number)
        return marks.definition, (number,)

    def _reduce_module(self, module: types.ModuleType) -> Any:
        if module is self._space.main_module:
            return marks.main_module, ()
        return NotImplemented


def _leave(_reducer: _Reducer, _value: Any) -> Any:
    return NotImplemented


Way = Callable[[_Reducer, Any], Any]
_WAYS: dict[type, Way] = {
    types.FunctionType: _Reducer._reduce_definition,
    types.CellType: _Reducer._reduce_cell,
    types.ModuleType: _Reducer._reduce_module,
    NamespaceOfCells: lambda *_: (marks.namespace_of, (marks.CELLS,)),
}


def _is_living(reduced: Any) -> bool:
    """Whether a reduced object is referred to by its name: all streams get the same one without being joined."""
    if type(reduced) is not tuple:
        return type(reduced) is str
    maker, arguments = reduced[:2]
    return maker in _LIVING or (maker is getattr and type(arguments[0]) is types.ModuleType)


_LIVING = frozenset((marks.process_group, marks.main_module, marks.definition, get_ipython, decimal.getcontext))


class _StreamPickler(pickle.Pickler):
    """Python's fast pickler, which nests its calls as deep as the objects are nested, up to a limit."""

    dispatch_table = cloudpickle.Pickler.dispatch_table

    def __init__(self, sink: _Sink, reducer: _Reducer) -> None:
        super().__init__(sink, 5)
        # Called by pickle for each value that is no plain list, dict, number, text and the like.
        self.reducer_override = reducer.reduce  # type: ignore[method-assign]


class _DeepPickler(pickle._Pickler):
    """Python's slow pickler, for objects that are nested deeper: in a thread with a stack that is large enough."""

    dispatch_table = cloudpickle.Pickler.dispatch_table
    memo: dict[int, tuple[int, Any]]

    def __init__(self, sink: _Sink, reducer: _Reducer) -> None:
        super().__init__(sink, 5)
        self._reducer = reducer
        self._stopped = False

    def reducer_override(self, value: Any) -> Any:
        """Called by pickle for each value that is no plain list, dict, number, text and the like."""
        if self._stopped:
            raise KeyboardInterrupt
        return self._reducer.reduce(value)

    def dump(self, value: Any) -> None:
        """Write a value."""
        limit, stack = sys.getrecursionlimit(), threading.stack_size(_DEEP_STACK_BYTES)
        errors: list[BaseException] = []
        thread = threading.Thread(target=self._dump, args=(value, errors), daemon=True)
        try:
            sys.setrecursionlimit(_DEEP)
            thread.start()
            thread.join()
        finally:
            self._stopped = True  # after an interrupt, which comes to the main thread
            thread.join(_STOP_SECONDS)  # the thread may be in a method of the user
            sys.setrecursionlimit(limit)
            threading.stack_size(stack)
        if errors:
            raise errors[0]

    def _dump(self, value: Any, errors: list[BaseException]) -> None:
        try:
            super().dump(value)
        except BaseException as err:  # raised again in the main thread
            errors.append(err.with_traceback(None))


def _refers_to_cells(stream: Stream) -> str | None:
    """Return the name under which a stream would look for an object among the names of cells; None if there is none."""
    if not any(b"__main__" in part for part in stream.parts):
        return None
    before: list[Any] = []
    for operation, argument, _ in pickletools.genops(b"".join(stream.parts)):
        if operation.name == "STACK_GLOBAL" and len(before) > 1 and before[-2] == "__main__":
            return str(before[-1])
        if operation.name == "MEMOIZE":
            continue
        before = [*before[-1:], argument if isinstance(argument, str) else None]
    return None


def _unshared() -> frozenset[type]:
    """Return the classes of values that cannot change: whether two names share one makes no difference."""
    import datetime
    import decimal
    import logging
    import pathlib

    plain = (type(None), bool, int, float, complex, str, bytes, range, slice, types.CodeType)
    by_name = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)
    of_torch = (torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format, torch.finfo, torch.iinfo)
    others = (decimal.Decimal, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone)
    paths = (pathlib.PosixPath, pathlib.PurePosixPath, logging.Logger, logging.RootLogger)
    return frozenset((*plain, *by_name, *of_torch, *others, *paths))


_UNSHARED = _unshared()
