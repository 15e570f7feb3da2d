"""A cheap look at all objects of users, before and after a cell: what changed and was not kept can then be named.

What a cell reaches is found before it runs, from its names, and a library may know functions of users that no name of
the cell leads to. So after the cell all that the names of the namespace lead to is compared once, by a hash of what
each object holds: identities of objects, values of plain ones, versions and samples of memory. Nothing is kept alive.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, FrameType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any

import torch

from jupyter_dist.rank.cells.values.opening import (
    attributes_of,
    ids,
    is_kind_of,
    is_weak,
    module_of,
    mro_of,
    name_of,
)
from jupyter_dist.rank.collectives.torch_compat import storage_id, version_of, without_functions
from jupyter_dist.rank.guard.own import time
from jupyter_dist.rank.state.graph.memory import bytes_at
from jupyter_dist.rank.state.process.modules.own import is_users, is_users_module

from .states.foreign import field_of_polars, glance_at_polars
from .states.mementos import slot_of, slots_of
from .walk import LOOK_EVERY, is_iterator, is_python, is_users_space, kept_apart, module_name

# A hash of what an object holds, and the objects in it.
Look = tuple[int, Iterable[Any]]  # 0: its changes are not looked for
_SEQUENCES = ids((list, tuple))
_OF_ITEMS = ids((list, tuple, set, frozenset))
_ATOMS = ids((int, float, bool, complex, str, bytes, type(None), range, torch.dtype, torch.device, torch.Size))
_INPUTS = ("In", "_ih", "_dh")
_SAMPLES, _SAMPLE_BYTES = 16, 64
_SMALL = 1 << 12  # bytes of memory that are hashed whole
_SLOW = 0.005  # seconds after which objects of a type in C are not asked for their state any more
_NOTHING: Look = (0, ())


class Fingerprint:
    """What all objects held at one moment, by their ids."""

    def __init__(self) -> None:
        self.sums: dict[int, int] = {}
        self.kinds: dict[int, str] = {}  # of objects whose change could not be named by what is found later
        self._starts: list[int] = []
        self._names: list[str] = []

    def begin_name(self, name: str) -> None:
        """Begin with the objects below a name."""
        self._starts.append(len(self.sums))
        self._names.append(name)

    def changed(self, before: Fingerprint, kept: set[int]) -> dict[str, str]:
        """Return the names through which objects are reached that changed and were not kept, with what changed."""
        found: dict[str, str] = {}
        old = before.sums
        for place, (key, now) in enumerate(self.sums.items()):
            if old.get(key, now) != now and now and old[key] and key not in kept:
                name = self._names[bisect_right(self._starts, place) - 1]
                found.setdefault(name, self.kinds.get(key, "an object"))
        return found


class Looker:
    """Looks at all objects that names lead to."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self._looks: dict[int, Callable[[Any], Look]] = {}  # by id of a type
        self._types: list[type] = []  # which are held, so that no id is used twice
        self._slow: set[int] = set()
        self._print = Fingerprint()

    def look(self, seconds: float) -> Fingerprint | None:
        """Return the fingerprint of all objects; None if that takes longer than `seconds` of the processor."""
        self._print = found = Fingerprint()
        ends = time.thread_time() + seconds
        for name in list(self._namespace):
            if name not in _INPUTS and type(name) is str:
                found.begin_name(name)
                if not self._follow(self._namespace[name], ends):
                    return None
        return found

    def _follow(self, root: Any, ends: float) -> bool:
        sums, looks, todo = self._print.sums, self._looks, [root]
        while todo:
            value = todo.pop()
            kind, key = id(type(value)), id(value)
            if key in sums or kind in _ATOMS or value is self._namespace:
                continue
            look = looks.get(kind) or self._look_of(value)
            sums[key] = 0
            sums[key], inner = look(value)
            todo += inner
            if len(sums) % LOOK_EVERY == 0 and time.thread_time() > ends:
                return False
        return True

    def _look_of(self, value: Any) -> Callable[[Any], Look]:
        kind = type(value)
        self._types.append(kind)
        found = next((look for base, look in self._rules() if is_kind_of(value, base)), None)
        if found is None:
            apart = kept_apart(value) is not None
            found = _nothing if apart else _instance if is_python(kind) else self._of_c
            found = found if apart or field_of_polars(value) is None else self._table
        self._looks[id(kind)] = found
        return found

    def _rules(self) -> list[tuple[type, Callable[[Any], Look]]]:
        numpy = sys.modules.get("numpy")
        arrays = [] if numpy is None else [(numpy.ndarray, _array), (numpy.generic, _nothing)]
        return [
            *arrays,
            (dict, _dict),
            (list, _items),
            (tuple, _items),
            (set, _items),
            (frozenset, _items),
            (bytearray, _buffer),
            (array, _buffer),
            (torch.Tensor, self._tensor),
            (torch.UntypedStorage, self._storage),
            (FrameType, _nothing),
            (TracebackType, _nothing),
            (ModuleType, _module),
            (type, _class),
            (FunctionType, _function),
            (MethodType, _method),
            (BuiltinFunctionType, _builtin),
        ]

    def _tensor(self, value: Any) -> Look:
        with without_functions(), contextlib.suppress(RuntimeError, NotImplementedError, AttributeError):
            gradient = value.grad if value.is_leaf else None
            layout = (tuple(value.shape), value.dtype, value.requires_grad, id(gradient), id(value.grad_fn))
            inner = [one for one in (gradient, attributes_of(value)) if one is not None]
            if value.layout is torch.strided and value.device.type != "meta":
                storage = value.untyped_storage()
                self._print.kinds[id(value)] = "a tensor"
                self._storage(storage, version_of(value))
                return hash((*layout, value.stride(), value.storage_offset(), storage_id(storage))), inner
            return hash((*layout, version_of(value))), inner
        return _NOTHING

    def _storage(self, value: Any, version: int | None = None) -> Look:
        key = storage_id(value)
        if key not in self._print.sums:
            sample = _memory(value.data_ptr(), value.nbytes()) if value.device.type == "cpu" else 0
            self._print.sums[key] = hash((value.nbytes(), sample, version if value.device.type != "cpu" else 0))
            self._print.kinds[key] = "the memory of a tensor"
        return _NOTHING

    def _table(self, value: Any) -> Look:
        contents = (attributes_of(value) or {}).get(field_of_polars(value))
        self._print.sums[id(contents)] = 0  # which is looked at here
        seen, inner = _instance(value)
        values: list[Any] = []
        with contextlib.suppress(Exception):
            values = glance_at_polars(contents)
        return hash((seen, _plain(values, 4, set()))), inner

    def _of_c(self, value: Any) -> Look:
        """Look at an object with fields in C: its contents, and the state with which it would be pickled."""
        attributes = attributes_of(value)
        inner = [one for one in gc.get_referents(value) if one is not attributes]
        kind = id(type(value))
        state = 0
        if kind not in self._slow and not any(is_iterator(base) for base in mro_of(value)):
            began = time.thread_time()
            state = _state(value, inner)
            if time.thread_time() - began > _SLOW:
                self._slow.add(kind)
                return 0, [*inner, attributes]
        self._print.kinds[id(value)] = f"a {module_name(type(value))}.{name_of(type(value))}".replace("builtins.", "")
        return 0 if kind in self._slow else hash((_sum(inner), state)), [*inner, attributes]


def _sum(values: Iterable[Any]) -> int:
    """Return a hash of identities, and of the values of plain objects, whose identity may be used again."""
    values = list(values)
    return hash((tuple(map(id, values)), tuple([one for one in values if id(type(one)) in _ATOMS])))


def _nothing(_: Any) -> Look:
    return _NOTHING


def _dict(value: Any) -> Look:
    space = dict.get(value, "__name__")
    if type(space) is str and type(value) is dict and "__builtins__" in value and not is_users_space(value):
        return _NOTHING
    items = [*dict.keys(value), *dict.values(value)]
    return _sum(items), [one for one in items if id(type(one)) not in _ATOMS]


def _items(value: Any) -> Look:
    items = gc.get_referents(value)
    if id(type(value)) not in _OF_ITEMS:
        items = [*items, *_own(value)]
    elif items and all(map(is_weak, items)):  # a list of who is alive, which libraries tidy up at any time
        return _NOTHING
    return _sum(items), [one for one in items if id(type(one)) not in _ATOMS]


def _own(value: Any) -> list[Any]:
    attributes = attributes_of(value)
    return [type(value), *([] if attributes is None else [attributes])]


def _instance(value: Any) -> Look:
    items = _own(value) + [slot_of(slot, value) for slot in slots_of(value)]
    return _sum(items), items


def _module(value: Any) -> Look:
    attributes = attributes_of(value)
    return (0, [attributes]) if attributes is not None and is_users_module(value) else _NOTHING


def _class(value: Any) -> Look:
    found = type.__dict__["__dict__"].__get__(value)
    module = module_of(value)
    if not module or not is_users(module):
        return _NOTHING
    items = [one for name, one in list(found.items()) if name not in ("__dict__", "__weakref__", "_abc_impl")]
    bases = type.__dict__["__bases__"].__get__(value)
    return _sum([*items, *bases]), [*items, *bases]


def _function(value: Any) -> Look:
    if not is_users_space(value.__globals__):
        return _NOTHING
    names = ("__code__", "__defaults__", "__kwdefaults__", "__dict__", "__closure__")
    items = [FunctionType.__dict__[name].__get__(value) for name in names]
    return _sum(items), [*items[1:], value.__globals__]


def _method(value: Any) -> Look:
    return 0, (value.__self__, value.__func__)


def _builtin(value: Any) -> Look:
    return 0, () if type(value.__self__) is ModuleType else (value.__self__,)


def _buffer(value: Any) -> Look:
    view = memoryview(value).cast("B")
    return hash(bytes(view) if view.nbytes < _SMALL else (view.nbytes, bytes(view[:: view.nbytes // _SMALL]))), _own(
        value
    )


def _array(value: Any) -> Look:
    layout = (value.shape, value.strides, str(value.dtype), value.flags.writeable)
    if value.dtype.hasobject:
        items = value.ravel().tolist()
        return hash((layout, _sum(items))), items
    is_whole = value.flags.owndata and value.flags.forc
    sample = _memory(value.__array_interface__["data"][0], value.nbytes) if is_whole else 0
    return hash((layout, sample)), [one for one in (value.base, attributes_of(value)) if one is not None]


def _memory(address: int, size: int) -> int:
    """Return a hash of memory: of all bytes, or of samples of much memory."""
    if size <= _SMALL:
        return hash(bytes(bytes_at(address, size)))
    step = (size - _SAMPLE_BYTES) // _SAMPLES
    return hash(b"".join(bytes_at(address + place * step, _SAMPLE_BYTES) for place in range(_SAMPLES + 1)))


def _state(value: Any, inner: list[Any]) -> int:
    """Return a hash of what an object in C would be pickled with, or of how it is shown; no code of users runs."""
    with contextlib.suppress(Exception):
        return hash(_plain(value.__reduce_ex__(4), 4, set(map(id, inner))))
    if all(isinstance(one, type) for one in inner):
        with contextlib.suppress(Exception):
            return hash(repr(value))
    with contextlib.suppress(Exception):
        return len(value)
    return 0


def _plain(value: Any, depth: int, inner: set[int]) -> Any:
    """Return plain values in what an object would be pickled with, without the objects that it holds."""
    if id(type(value)) in _ATOMS:
        return value
    if depth and id(value) not in inner and id(type(value)) in _SEQUENCES:
        return tuple(_plain(one, depth - 1, inner) for one in value)
    if depth and id(value) not in inner and type(value) is dict:
        return tuple((_plain(name, 0, inner), _plain(one, depth - 1, inner)) for name, one in value.items())
    return ()  # an object, which may be made for this call only
