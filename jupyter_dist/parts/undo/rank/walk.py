"""Walks from names to the mutable objects that can be reached through them, and keeps the state of each.

By the rules of values/opening.py: no code of users runs. What has a state that cannot be kept is named.
"""

from __future__ import annotations

import builtins
import functools
import gc
import struct
import sys
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CellType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    TracebackType,
    WrapperDescriptorType,
)
from typing import Any, TypeVar

import torch

from jupyter_dist.rank.cells.values.opening import (
    attributes_of,
    ids,
    is_kind_of,
    is_opened,
    is_weak,
    module_of,
    mro_of,
    name_of,
)
from jupyter_dist.rank.collectives.torch_compat import base_of, storage_id, without_functions
from jupyter_dist.rank.guard.own import threading, time
from jupyter_dist.rank.state.process.modules.own import is_users, is_users_module

from . import reach
from .allowance import Allowance
from .states.caches import CacheState, ContextState
from .states.foreign import DecimalState, LockState, PartsState, PolarsState, field_of_polars, is_plan, pandas_parts
from .states.mementos import (
    BytesState,
    CellState,
    ClassState,
    DequeState,
    DictState,
    ExceptionState,
    FunctionState,
    InstanceState,
    LibraryState,
    ListState,
    Memento,
    NamesState,
    SetState,
)
from .states.memory import ArrayBytes, ArrayItems, ArrayLayout, DeviceBytes, MemoryState, StorageBytes
from .states.process import generator_state
from .states.tensors import TensorAttributes, TensorCopy, TensorLayout

_get_dict = type.__dict__["__dict__"].__get__
_get_qualname = type.__dict__["__qualname__"].__get__
_get_module = type.__dict__["__module__"].__get__
_get_flags = type.__dict__["__flags__"].__get__
_get_base = type.__dict__["__base__"].__get__
_get_size = type.__dict__["__basicsize__"].__get__
_POINTER = struct.calcsize("P")
_HELD_BY_ONE = 3  # by the object, a list of its fields, and the call that counts
_HEAP, _IMMUTABLE = 1 << 9, 1 << 8  # Py_TPFLAGS_HEAPTYPE, Py_TPFLAGS_IMMUTABLETYPE
_PLAIN = ids(
    (
        *(int, float, bool, complex, str, bytes, type(None), range, type(...), type(NotImplemented)),
        *(object, torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format, CodeType),
        *(GetSetDescriptorType, MemberDescriptorType, MethodDescriptorType, WrapperDescriptorType),
    )
)
_CONTAINERS = ids((dict, list, tuple, set, type(functools.lru_cache(len))))
# Functions of C that reach any name: their words may be in an earlier cell.
_BOUNDLESS = frozenset(map(id, (eval, exec, compile, globals, locals, vars, __import__, sys._getframe)))
_CACHED = type(functools.lru_cache(len))
_NO_DISPATCH = torch.Tensor.__dict__.get("__torch_dispatch__")
# Libraries whose types in C hold nothing that a cell changes and that could be undone, or are covered otherwise.
_QUIET = frozenset(
    {
        *("torch", "numpy", "pandas", "pyarrow", "scipy", "datetime", "decimal", "zoneinfo", "uuid", "re", "builtins"),
        *("_thread", "functools", "operator", "types", "typing", "weakref", "_weakref", "collections", "_abc"),
        *("contextvars", "_contextvars", "_collections", "_struct", "_json", "pybind11_builtins"),
    }
)
_OURS = ("jupyter_dist.", "IPython.")
_OF_ASYNCIO = ("asyncio.locks", "asyncio.queues", "asyncio.mixins")  # what a cell may keep; the rest is the loop's
_SHELL = ("IPython.core.interactiveshell", "InteractiveShell")
_OF_PROCESS = ("logging", "importlib", "_frozen_importlib")
_APART = {
    ("threading", "Thread"): "a thread runs on",
    ("concurrent.futures._base", "Executor"): "the threads or processes of a pool run on",
    ("multiprocessing.process", "BaseProcess"): "a process runs on",
    ("multiprocessing.queues", "Queue"): "a queue of processes keeps its items",
    ("multiprocessing.managers", "BaseManager"): "a process runs on",
    ("subprocess", "Popen"): "a process runs on",
    ("socket", "socket"): "a socket keeps its connection",
    ("torch.utils.data.dataloader", "_MultiProcessingDataLoaderIter"): "an iterator with workers keeps its place",
}
MAX_OBJECTS = 1_000_000
LOOK_EVERY = 10_000  # objects
MAX_NAMED = 20


_OFF = "Undo is off for cells that reach `{}`: to look at its objects would take more than 5 % of the time of cells."
# An object by its id, or something else by its name; and which of its states.
Key = tuple[Any, type]
M = TypeVar("M", bound=Memento)


class TooManyObjectsError(Exception):
    """The walk has seen more objects than can be kept."""


class ObjectWalk:
    """One walk before a cell. `latest` has the last known state of each object, to be shared if it is still right."""

    def __init__(self, namespace: dict[str, Any], latest: dict[Key, Memento], allowance: Allowance) -> None:
        self.mementos: dict[Key, Memento] = {}
        self.copies: list[MemoryState] = []  # to be taken, as they have changed since the last cell
        self.copied_bytes = 0
        self.not_kept: list[str] = []
        self.has_wrapped = False  # a tensor around others, such as a DTensor
        self._namespace = namespace
        self._latest = latest
        self._seen: set[int] = {id(namespace)}
        self._todo: list[Any] = []
        self._names: set[str] | None = set()  # None: all
        self._origin = ""
        self._allowance = allowance
        self._began = time.thread_time()
        self._visits: dict[int, Callable[[ObjectWalk, Any], None]] = {}  # by id of a class
        self._libraries: list[Any] = []  # modules and classes that the code may change
        self._held: list[Any] = []  # temporary objects, so that no id is used twice

    def from_code(self, code: str | None, also: Iterable[str] = ()) -> None:
        """ObjectWalk from the names that a cell can reach, and from others; None: from all."""
        try:
            if code is None:
                raise reach.ReachesAllError
            self._walk_names([*reach.names_of_cell(code), *also])
        except reach.ReachesAllError:
            self._begin_again()
            self._walk_names(list(self._namespace))
        self._keep_libraries(code)
        self._allowance.spend(time.thread_time() - self._began)

    def _walk_names(self, names: list[str]) -> None:
        for name in names:
            if name in self._namespace and self._allowance.refuses(name, self._namespace[name]):
                raise TooManyObjectsError(_OFF.format(name))
        for name in names:
            self._walk_name(name)

    def _keep_libraries(self, code: str | None) -> None:
        """Keep modules and classes of libraries under the names of the code, which may replace or add these."""
        names = set(self._names or ())
        if code is not None:
            names |= reach.all_names(code)
        seen: set[int] = set()
        for library in self._libraries:  # grows
            if id(library) in seen:
                continue
            seen.add(id(library))
            state = self.mementos[(id(library), LibraryState)] = LibraryState(library, names)
            self._libraries += state.parts(names)

    def _begin_again(self) -> None:
        """Forget a walk that has found too little, and walk from all names."""
        self.mementos.clear()
        self.copies.clear()
        self.copied_bytes = 0
        self.not_kept.clear()
        self._todo.clear()
        self._libraries.clear()
        self._names, self._seen = None, {id(self._namespace)}

    def _walk_name(self, name: str) -> None:
        if self._names is not None:
            if name in self._names:
                return
            self._names.add(name)
        if name in ("In", "_ih", "_dh") or name not in self._namespace:
            return
        self._origin = name
        self._todo.append(self._namespace[name])
        while self._todo:
            self._visit(self._todo.pop())

    def _visit(self, value: Any) -> None:
        if id(type(value)) in _PLAIN or id(value) in self._seen:
            if value is self._namespace:
                self._all()
            return
        self._seen.add(id(value))
        if len(self._seen) % LOOK_EVERY == 0 and (
            len(self._seen) > MAX_OBJECTS or time.thread_time() - self._began > self._allowance.limit()
        ):
            self._give_up()
        visit = self._visits.get(id(type(value)))
        if visit is None:
            visit = self._visits[id(type(value))] = self._visit_of(value)
        visit(self, value)

    def _give_up(self) -> None:
        """Remember the name with too many objects: the next cells that reach it do not try it in vain."""
        name, used = self._origin, time.thread_time() - self._began
        self._allowance.failed(name, self._namespace.get(name), used)
        self._allowance.spend(used)
        raise TooManyObjectsError(_OFF.format(name))

    @staticmethod
    def _visit_of(value: Any) -> Callable[[ObjectWalk, Any], None]:
        """Return the method for objects of a type."""
        for kind in mro_of(value):
            if (visit := _VISITS.get(id(kind))) is not None:
                return visit
            if (module_of(kind), name_of(kind)) == _SHELL:
                return lambda walk, _: walk._all()
            if (module_name(kind), name_of(kind)) == ("decimal", "Context"):
                return ObjectWalk._decimal
        if (sentence := kept_apart(value)) is not None:
            return lambda walk, _: walk.name(sentence) if sentence else None
        return ObjectWalk._weak if is_weak(value) else ObjectWalk._instance

    def keep(self, value: Any, kind: type[M]) -> M:
        """Keep the state of an object: the last known one if the object has not changed since."""
        key = (id(value), kind)
        known = self._latest.get(key)
        if known is None or known.value is not value or known.differs():
            known = kind(value)
        self.mementos[key] = known
        return known  # type: ignore[return-value]

    def add(self, values: Iterable[Any]) -> None:
        """Visit these objects later."""
        self._todo.extend(value for value in values if id(type(value)) not in _PLAIN)

    def name(self, what: str) -> None:
        """Name something that cannot be kept."""
        sentence = f"`{self._origin}`: {what}"
        if sentence not in self.not_kept and len(self.not_kept) < MAX_NAMED:
            self.not_kept.append(sentence)

    # -- kinds of objects -------------------------------------------------------------------------------

    def _dict(self, value: Any) -> None:
        if value is sys.modules or value is vars(builtins):
            return  # both are in use all the time: names of builtins are kept for each cell
        if _is_of_module(value):
            self._globals(value)
            return
        state = self.keep(value, DictState)
        self.add(state.saved)
        self.add(state.saved.values())
        self._more(value, dict)  # an OrderedDict has attributes, such as `_metadata` of a `state_dict`

    def _list(self, value: Any) -> None:
        state = self.keep(value, ListState)
        self.add(state.saved)
        self._more(value, list)

    def _tuple(self, value: Any) -> None:
        self.add(tuple.__iter__(value))
        self._more(value, tuple)

    def _set(self, value: Any) -> None:
        state = self.keep(value, SetState)
        self.add(state.saved)
        self._more(value, set)

    def _frozenset(self, value: Any) -> None:
        self.add(frozenset.__iter__(value))
        self._more(value, frozenset)

    def _deque(self, value: Any) -> None:
        state = self.keep(value, DequeState)
        self.add(state.saved)
        self._more(value, deque)

    def _bytes(self, value: Any) -> None:
        self.keep(value, BytesState)
        self._more(value, bytearray, array)

    def _more(self, value: Any, *plain: type) -> None:
        """Keep the attributes that an instance of a subclass has besides its items."""
        if not any(type(value) is kind for kind in plain):
            self._attributes(value)

    def _attributes(self, value: Any) -> None:
        state = self.keep(value, InstanceState)
        if state.attributes is not None:
            self.add([state.attributes])
        self.add(item for _, item in state.saved)
        self._kind(type(value))

    def _kind(self, kind: type) -> None:
        """Keep the classes of an instance that users wrote, or that a library has made for it."""
        self.add([type(kind)])
        for base in mro_of_class(kind):
            if id(base) in self._seen:
                continue
            self._seen.add(id(base))
            module = module_of(base)
            if module != "__main__" and not is_users(module) and not _is_made(base, module):
                self._library(module)
                if base is kind:
                    self._libraries.append(base)
            elif not any(base is plain for plain in (object, type)):
                self.add(self.keep(base, ClassState).saved.values())

    def _library(self, module: str | None) -> None:
        if self._names is not None and type(module) is str and module:
            reach.check_module(module)

    def _class(self, value: type) -> None:
        self._seen.discard(id(value))
        self._kind(value)

    def _function(self, value: Any) -> None:
        state = self.keep(value, FunctionState)
        code, defaults, keywords, attributes, _ = state.saved
        self.add((defaults, keywords, attributes))
        self.add(value.__closure__ or ())
        space = value.__globals__
        if space is self._namespace:
            self._reaches(code)
        else:
            self._globals(space)

    def _reaches(self, code: CodeType) -> None:
        """ObjectWalk from the names that a function of the namespace has, later."""
        if self._names is not None:
            names = reach.names_of_code(code)
            new = [name for name in names if name not in self._names]
            self._names.update(new)
            self.add(self._namespace[name] for name in new if name in self._namespace)

    def _globals(self, space: dict[str, Any]) -> None:
        if is_users_space(space):
            self._names_of(space)
        else:
            self._library(dict.get(space, "__name__"))

    def _names_of(self, space: dict[str, Any]) -> None:
        """Keep the names of a module that the user wrote."""
        if id(space) in self._seen:
            return
        self._seen.add(id(space))
        state = self.keep(space, NamesState)
        self.add(item for name, item in state.saved.items() if name != "__builtins__")

    def _module(self, value: Any) -> None:
        attributes = attributes_of(value)
        if attributes is not None:
            self._libraries.append(value)
            self._globals(attributes) if attributes is not self._namespace else self._all()

    def _all(self) -> None:
        if self._names is not None:
            raise reach.ReachesAllError

    def _cell(self, value: Any) -> None:
        state = self.keep(value, CellState)
        self.add([state.saved])

    def _method(self, value: Any) -> None:
        self.add((value.__self__, value.__func__))

    def _wrapper(self, value: Any) -> None:
        self.add([value.__self__])

    def _view(self, value: Any) -> None:
        self.add([value.obj])

    def _builtin(self, value: Any) -> None:
        owner = value.__self__
        if owner is not None and type(owner) is not ModuleType:
            self.add([owner])
        if id(value) in _BOUNDLESS:
            self._all()
        self._library(value.__module__)

    def _partial(self, value: Any) -> None:
        partial = functools.partial.__dict__
        self.add(partial[name].__get__(value) for name in ("func", "args", "keywords"))
        self._attributes(value)

    def _property(self, value: Any) -> None:
        self.add(property.__dict__[name].__get__(value) for name in ("fget", "fset", "fdel"))

    def _wrapped(self, value: Any) -> None:
        self.add([value.__func__])

    def _exception(self, value: Any) -> None:
        self.add(self.keep(value, ExceptionState).saved)
        self._attributes(value)

    def _traceback(self, value: Any) -> None:
        self.add((value.tb_frame, value.tb_next))

    def _frame(self, value: Any) -> None:
        """Visit the variables of a frame of users. Its callers are in the traceback, or are the rank's."""
        space = value.f_globals
        if space is self._namespace:
            self._all()
        elif not is_users_space(space):
            return
        self.add(one for one in gc.get_referents(value) if type(one) is not FrameType)

    def _slice(self, value: Any) -> None:
        self.add((value.start, value.stop, value.step))

    def _untyped(self, value: Any) -> None:
        """Keep the bytes of a storage that a cell has without a tensor."""
        if value.device.type != "meta":
            self._bytes_of(storage_id(value), value, StorageBytes if value.device.type == "cpu" else DeviceBytes)

    def _decimal(self, value: Any) -> None:
        self.keep(value, DecimalState)

    def _lock(self, value: Any) -> None:
        self.keep(value, LockState)

    def _generator(self, value: Any) -> None:
        self.name(f"a {name_of(type(value)).replace('_', ' ')} keeps its place")
        self._all()  # its code runs when a cell asks for the next value
        self.add(gc.get_referents(value))  # its variables

    def _nothing(self, value: Any) -> None:
        return

    def _weak(self, value: Any) -> None:
        self.add([value()] if is_kind_of(value, weakref.ReferenceType) else [])

    def _instance(self, value: Any) -> None:
        self._attributes(value)
        if (generator := generator_state(value)) is not None:
            self.mementos[(id(value), type(generator))] = generator
            return
        if field_of_polars(value) is not None:
            table = self.keep(value, PolarsState)
            self._seen.add(id(table.contents))  # which nothing else has
            self.add(table.objects())
        if is_opened(value):
            return
        if (parts := pandas_parts(value)) is not None:
            self.keep(value, PartsState)
            self._held.append(parts)
            self.add(parts)
            return
        base = next((kind for kind in mro_of(value) if not is_python(kind)), object)
        fields, own = fields_of(value)
        self.add(fields)
        for one in own:
            self._held.append(one)
            self.add(gc.get_referents(one))
        if is_kind_of(value, _CACHED):
            self.keep(value, CacheState)
        if is_kind_of(value, ContextVar):
            self.add([self.keep(value, ContextState).saved])
        is_quiet = (module_name(base).partition(".")[0] in _QUIET and not _is_foreign(base)) or _is_descriptor(base)
        if is_plan(base):
            self._all()
        elif base is not object and (is_iterator(base) or not is_quiet):
            self.name(_sentence(base, type(value)))
            self._all()

    # -- tensors and arrays -------------------------------------------------------------------------------

    def _tensor(self, value: Any) -> None:
        dispatch = next(
            found for base in mro_of(value) if (found := _get_dict(base).get("__torch_dispatch__")) is not None
        )
        with without_functions():
            is_plain = dispatch is _NO_DISPATCH and not value.is_quantized and not value.is_nested
            has_storage = is_plain and value.layout is torch.strided and value.device.type != "meta"
            layout = TensorLayout(value, has_storage)
        self.has_wrapped |= dispatch is not _NO_DISPATCH
        self.mementos[(id(value), TensorLayout)] = layout
        attributes = self.keep(value, TensorAttributes)
        self.add(attributes.saved)
        if layout.function is not None:
            self._all()  # a backward pass reaches leaves and hooks that no name leads to
            self.name("a backward pass frees the graph of a tensor; its values are kept")
        if has_storage:
            self._storage(value)
        elif dispatch is _NO_DISPATCH and value.device.type != "meta":
            self._special(value)
        if (base := base_of(value)) is not None:
            self.add([base])
        self._attributes(value)

    def _storage(self, value: Any) -> None:
        try:
            with without_functions():
                storage = value.untyped_storage()
                key = storage_id(storage)
        except (RuntimeError, NotImplementedError):
            self.name("a tensor without a storage of its own")
            return
        self._bytes_of(key, storage, StorageBytes if storage.device.type == "cpu" else DeviceBytes)

    def _bytes_of(self, key: int, value: Any, kind: type[MemoryState]) -> None:
        if (key, kind) in self.mementos:
            return
        known = self._latest.get((key, kind))
        if not isinstance(known, MemoryState) or not _is_same_memory(known.value, value):
            known = None
        state = kind(value)
        if (size := state.plan(known)) or known is None or known.size != state.size:
            self.mementos[(key, kind)] = state
            self.copies.append(state)
            self.copied_bytes += size
        else:
            self.mementos[(key, kind)] = known

    def _special(self, value: Any) -> None:
        try:
            self.mementos[(id(value), TensorCopy)] = TensorCopy(value)
        except (RuntimeError, NotImplementedError):
            self.name("a tensor without a storage of its own")

    def _array(self, value: Any) -> None:
        self.keep(value, ArrayLayout)
        owner = value.base
        if value.flags.owndata or (owner is not None and not _is_followed(owner) and value.flags.writeable):
            if value.dtype.hasobject or not value.flags.forc:
                self.keep(value, ArrayItems)
            else:
                self._bytes_of(id(value), value, ArrayBytes)
        if owner is not None:
            self.add([owner])
        if value.dtype.hasobject:
            self.add(item for item in value.ravel().tolist())
        self._more(value, type(value) if module_of(type(value)) == "numpy" else object)


def fields_of(value: Any) -> tuple[list[Any], list[Any]]:
    """Return the fields in C of an object, and the containers among them that it alone holds.

    Writing into these behind its back breaks it (the list of a SimpleQueue, the cache of a connection to SQLite), so
    only what is in them is kept.
    """
    fields = gc.get_referents(value)
    own = [
        place
        for place in range(len(fields))
        if sys.getrefcount(fields[place]) <= _HELD_BY_ONE and id(type(fields[place])) in _CONTAINERS
    ]
    return [one for place, one in enumerate(fields) if place not in own], [fields[place] for place in own]


def kept_apart(value: Any) -> str | None:
    """Return a sentence about an object that lives with threads, processes or the rank itself; None for all others.

    The sentence is empty if the object is ours, IPython's or asyncio's: these continue, whatever cells do.
    """
    if module_of(type(value)).startswith(_OF_PROCESS):
        return ""
    for kind in mro_of(value):
        module = module_of(kind)
        if module.startswith(_OURS) or (module.startswith("asyncio.") and module not in _OF_ASYNCIO):
            return ""
        if (sentence := _APART.get((module, name_of(kind)))) is not None:
            return sentence
    return None


def is_users_space(space: dict[str, Any]) -> bool:
    """Whether names belong to a module that the user wrote, or to none."""
    name = dict.get(space, "__name__")
    module = sys.modules.get(name) if type(name) is str else None
    if module is None and type(name) is str:
        module = sys.modules.get(name.partition(".")[0])  # a part of a library that is not listed
    return module is None or is_users_module(module)


def _is_of_module(value: Any) -> bool:
    """Whether a dictionary has the names of a module."""
    name = dict.get(value, "__name__")
    module = sys.modules.get(name) if type(name) is str else None
    return module is not None and attributes_of(module) is value


def mro_of_class(kind: type) -> tuple[type, ...]:
    """Return a class and its bases, without calling its metaclass."""
    mro: tuple[type, ...] = type.__dict__["__mro__"].__get__(kind)
    return mro


def _is_same_memory(one: Any, other: Any) -> bool:
    if isinstance(one, torch.UntypedStorage):
        return isinstance(other, torch.UntypedStorage) and storage_id(one) == storage_id(other)
    return one is other


def _is_followed(base: Any) -> bool:
    """Whether the memory below an array belongs to an object whose bytes are kept with it."""
    kinds = (torch.Tensor, bytearray, array, bytes)
    numpy = sys.modules.get("numpy")
    return any(is_kind_of(base, kind) for kind in (*kinds, *([numpy.ndarray] if numpy is not None else [])))


def is_python(kind: type) -> bool:
    """Whether a class was made by a class statement: it adds no fields but slots and attributes to its base."""
    flags, own, base = _get_flags(kind), _get_dict(kind), _get_base(kind)
    if not flags & _HEAP or flags & _IMMUTABLE or base is None or module_name(base) == "pybind11_builtins":
        return False
    slots = sum(type(one) is MemberDescriptorType for one in own.values()) if "__slots__" in own else 0
    places = slots + ("__dict__" in own) + ("__weakref__" in own)
    return bool(_get_size(kind) <= _get_size(base) + _POINTER * places)


def _is_made(kind: type, module: str | None) -> bool:
    """Whether a library has made a class while it ran, and may change it: its module does not have it under its name.

    parametrize() makes a class for each module, fully_shard() one for each class of modules.
    """
    name = _get_qualname(kind)
    found = sys.modules.get(module) if type(module) is str else None
    if found is None or not is_python(kind):
        return False
    attributes: Any = attributes_of(found) or {}
    for part in name.split("."):
        one = attributes.get(part)
        if one is kind:
            return False
        attributes = _get_dict(one) if is_kind_of(one, type) else {}
    return True


def is_iterator(kind: type) -> bool:
    """Whether instances of a class have a place that moves on."""
    return "__next__" in _get_dict(kind)


def _is_descriptor(kind: type) -> bool:
    """Whether instances describe an attribute of a class, such as a field of a ctypes structure."""
    return "__get__" in _get_dict(kind)


def module_name(kind: type) -> str:
    """Return the name of the module of a class, of a class in C, too."""
    found = _get_module(kind)
    return found if type(found) is str else ""


def _is_foreign(kind: type) -> bool:
    """Whether a class of an extension has the module of Python's own, as those in Rust do: polars' frames."""
    return module_name(kind) == "builtins" and bool(_get_flags(kind) & _HEAP)


def _sentence(base: type, kind: type) -> str:
    """Name a state that cannot be kept, by the class in C that it belongs to."""
    name, module = name_of(base), module_name(base)
    if module in ("_io", "io"):
        return "an open file keeps its position and its contents"
    if module in ("socket", "_socket", "ssl"):
        return "a socket keeps its connection"
    if name.endswith("iterator"):
        return f"a {name.replace('_', ' ')} keeps its place"
    return f"a {module_name(kind)}.{name_of(kind)}, whose contents cannot be read".replace("builtins.", "")


_VISITS: dict[int, Callable[[ObjectWalk, Any], None]] = {
    id(dict): ObjectWalk._dict,
    id(list): ObjectWalk._list,
    id(tuple): ObjectWalk._tuple,
    id(set): ObjectWalk._set,
    id(frozenset): ObjectWalk._frozenset,
    id(deque): ObjectWalk._deque,
    id(bytearray): ObjectWalk._bytes,
    id(array): ObjectWalk._bytes,
    id(torch.Tensor): ObjectWalk._tensor,
    id(type): ObjectWalk._class,
    id(FunctionType): ObjectWalk._function,
    id(MethodType): ObjectWalk._method,
    id(MethodWrapperType): ObjectWalk._wrapper,
    id(memoryview): ObjectWalk._view,
    id(BuiltinFunctionType): ObjectWalk._builtin,
    id(functools.partial): ObjectWalk._partial,
    id(ModuleType): ObjectWalk._module,
    id(CellType): ObjectWalk._cell,
    id(property): ObjectWalk._property,
    id(staticmethod): ObjectWalk._wrapped,
    id(classmethod): ObjectWalk._wrapped,
    id(BaseException): ObjectWalk._exception,
    id(TracebackType): ObjectWalk._traceback,
    id(FrameType): ObjectWalk._frame,
    id(slice): ObjectWalk._slice,
    id(torch.UntypedStorage): ObjectWalk._untyped,
    id(type(threading.Lock())): ObjectWalk._lock,
    **dict.fromkeys(ids((GeneratorType, CoroutineType, AsyncGeneratorType)), ObjectWalk._generator),
    **dict.fromkeys(ids((bytes, str, int, float, complex)), ObjectWalk._nothing),
}


def know_arrays() -> None:
    """Add numpy's arrays to the kinds of objects, once numpy is imported."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        _VISITS[id(numpy.ndarray)] = ObjectWalk._array
        _VISITS[id(numpy.generic)] = ObjectWalk._nothing
