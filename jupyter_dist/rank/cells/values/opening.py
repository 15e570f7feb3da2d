"""The contents of objects, and their names: one set of rules for comparing, listing and memory.

No code of users runs. Types are compared by identity, because a metaclass may define `__eq__` and `__hash__`.
Containers are read by the methods of Python's own types, not by overrides of subclasses, and attributes from the
instance's dictionary and its slots, past properties and `__getattr__`.
"""

from __future__ import annotations

import functools
import struct
import sys
import weakref
from collections import UserDict, UserList, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CellType,
    CodeType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import torch

MAX_DEPTH = 60
MAX_ITEMS = 100_000  # of one dictionary: its items are copied, as threads may change it meanwhile

# A name, or None if the child holds memory but is no part of the value; the value; its part of a module or optimizer.
Child = tuple["str | None", Any, str]

_get_mro = type.__dict__["__mro__"].__get__
_get_dict = type.__dict__["__dict__"].__get__
_get_name = type.__dict__["__name__"].__get__
_get_basicsize = type.__dict__["__basicsize__"].__get__
_get_flags = type.__dict__["__flags__"].__get__
_OF_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE: not one of C's own types
_POINTER = struct.calcsize("P")
_get_cell = CellType.__dict__["cell_contents"].__get__
_PARTIAL = functools.partial.__dict__
_PARTS_OF_MODULE = {"_parameters": "parameters", "_buffers": "buffers", "_modules": ""}
_OF_TORCH = frozenset(vars(torch.nn.Module())) - {"training"}  # hooks, and what is flattened
_OWN_ATTRIBUTES = frozenset({"__dict__", "__weakref__", "__module__", "__doc__", "__slots__", "__annotations__"})
_OF_C = (GetSetDescriptorType, MemberDescriptorType)  # how Python's own types read their fields
# Modules that hold another one, and beside it handles of their rank: process groups, reducers, compilers.
_WRAPPERS = ("torch.distributed.", "torch.nn.parallel.", "torch._dynamo.")
_GENERATORS = {GeneratorType: "gi", CoroutineType: "cr", AsyncGeneratorType: "ag"}


@dataclass
class StepBudget:
    """The number of objects that a walk may still look at."""

    left: int


def ids(types: Iterable[type]) -> frozenset[int]:
    """Return the ids of types, to look types up: their own hash and comparison may be code of a metaclass."""
    return frozenset(map(id, types))


_WEAK = ids((weakref.ReferenceType, weakref.ProxyType, weakref.CallableProxyType))


def mro_of(value: Any) -> tuple[type, ...]:
    """Return the type of a value and its bases, without calling its metaclass."""
    mro: tuple[type, ...] = _get_mro(type(value))
    return mro


def is_kind_of(value: Any, kind: type) -> bool:
    """Return whether the type of a value is `kind` or derived from it, by identity.

    `isinstance` may ask the object for its class, and `in` compares classes, which may be code of a metaclass.
    """
    return any(base is kind for base in mro_of(value))


def is_one_of(value: Any, kinds: tuple[type, ...]) -> bool:
    """Return whether the type of a value is one of these, by identity."""
    return any(type(value) is kind for kind in kinds)


def is_module(value: Any) -> bool:
    """Return whether a value is a torch module."""
    return is_kind_of(value, torch.nn.Module)


def is_optimizer(value: Any) -> bool:
    """Return whether a value is an optimizer of torch."""
    return is_kind_of(value, torch.optim.Optimizer)


def is_tensor(value: Any) -> bool:
    """Return whether a value is a plain tensor or parameter."""
    return type(value) is torch.Tensor or type(value) is torch.nn.Parameter


def is_array(value: Any) -> bool:
    """Return whether a value is a plain numpy array."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is getattr(numpy, "ndarray", None)


def is_weak(value: Any) -> bool:
    """Return whether a value is a weak reference, which holds no memory."""
    return id(type(value)) in _WEAK


def name_of(kind: type) -> str:
    """Return the name of a class, without calling its metaclass."""
    name: str = _get_name(kind)
    return str.__getitem__(name, slice(None))


def module_of(kind: type) -> str:
    """Return the name of the module that defines a class; empty if its class dictionary has another thing there."""
    name = _get_dict(kind).get("__module__")
    return name if type(name) is str else ""


def children(value: Any) -> Iterator[Child]:
    """Yield the contents of an object; plain values, tensors, arrays and objects that cannot be opened have none."""
    for kind in mro_of(value):
        found = _OPENED.get(id(kind))
        if found is not None:
            yield from found(value)
            return
    yield from _attributes(value)


def is_opened(value: Any) -> bool:
    """Return whether the rules cover the contents of a value, even if it has none."""
    mro = mro_of(value)
    if any(id(kind) in _CLOSED for kind in mro):
        return False
    if any(id(kind) in _OPENED for kind in mro):
        return True
    # Instances of Python's classes have a place for the dictionary, one for weak references, and one per slot.
    slots = sum(type(one) is MemberDescriptorType for base in _slotted(mro) for one in _get_dict(base).values())
    places = sum(any(name in _get_dict(base) for base in mro) for name in ("__dict__", "__weakref__"))
    kind = type(value)
    size: int = _get_basicsize(kind)
    return bool(_get_flags(kind) & _OF_PYTHON) and size <= object.__basicsize__ + _POINTER * (places + slots)


def attributes_of(value: Any) -> dict[Any, Any] | None:
    """Return the instance's dictionary of attributes, past properties and `__getattr__`; None if it has none."""
    for base in mro_of(value):
        descriptor = _get_dict(base).get("__dict__")
        if descriptor is None:
            continue
        if not is_one_of(descriptor, _OF_C):
            return None
        try:
            found = descriptor.__get__(value)
        except (AttributeError, TypeError):
            return None
        return found if type(found) is dict else None
    return None


def _slotted(mro: tuple[type, ...]) -> list[type]:
    """Return the classes with `__slots__`."""
    return [base for base in mro if "__slots__" in _get_dict(base)]


def _attributes(value: Any) -> Iterator[Child]:
    """Yield the attributes of an instance: first from its dictionary, then from its slots."""
    for name, attribute in islice(list((attributes_of(value) or {}).items()), MAX_ITEMS):
        if type(name) is str:
            yield name, attribute, ""
    for base in _slotted(mro_of(value)):
        for name, descriptor in list(_get_dict(base).items()):
            if type(descriptor) is MemberDescriptorType and name not in _OWN_ATTRIBUTES:
                try:
                    yield name, descriptor.__get__(value), ""
                except (AttributeError, TypeError):
                    continue  # it has not been set


def _dictionary(value: Any) -> Iterator[Child]:
    names: set[str] = set()
    for place, (key, item) in enumerate(list(islice(dict.items(value), MAX_ITEMS))):
        name = key_name(key, place)
        if name in names:  # 1 beside "1"
            name = f"{name} ({type(key).__name__ if is_one_of(key, (str, int)) else place})"
        names.add(name)
        yield name, item, ""
    if not is_one_of(value, (dict,)):
        # The version metadata of `state_dict()` is no part of the state.
        yield from ((None if name == "_metadata" else name, item, part) for name, item, part in _attributes(value))


def key_name(key: Any, place: int) -> str:
    """Return the name of a key in a path; for a key that is an object, its place."""
    if is_one_of(key, (str, int, bool, float, type(None))):
        return readable(str(key))
    if type(key) is tuple and all(is_one_of(one, (str, int, bool, float)) for one in key):
        return readable(str(key))
    return f"<{place}>"


def readable(text: str) -> str:
    """Return a text without surrogates, which no message can have."""
    return text.encode("utf-8", "backslashreplace").decode()


def _user_dictionary(value: Any) -> Iterator[Child]:
    for name, attribute, part in _attributes(value):
        if name == "data":
            yield from children(attribute)
        else:
            yield name, attribute, part


def _exception(error: Any) -> Iterator[Child]:
    yield "args", BaseException.__dict__["args"].__get__(error), ""
    yield from _attributes(error)


def _sequence(of: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Child]]:
    def items(value: Any) -> Iterator[Child]:
        for number, item in enumerate(of(value)):
            yield str(number), item, ""
        if not is_one_of(value, (list, tuple, set, frozenset, deque)):
            yield from _attributes(value)

    return items


def _tuple(value: Any) -> Iterator[Child]:
    """Yield the items of a tuple; for a named tuple, with their names."""
    fields = next((found for base in mro_of(value) if (found := _get_dict(base).get("_fields")) is not None), ())
    named = type(fields) is tuple and len(fields) == tuple.__len__(value) and all(type(one) is str for one in fields)
    for number, item in enumerate(tuple.__iter__(value)):
        yield fields[number] if named else str(number), item, ""


def _module(module: Any) -> Iterator[Child]:
    """Yield parameters, buffers, modules, and the other attributes; hooks only hold memory."""
    attributes = attributes_of(module) or {}
    for kind, part in _PARTS_OF_MODULE.items():
        members = attributes.get(kind)
        if members is not None and is_kind_of(members, dict):
            yield from ((str(name), item, part) for name, item in list(dict.items(members)) if item is not None)
    is_wrapper = any(module_of(type(module)).startswith(prefix) for prefix in _WRAPPERS) and not _is_sharded(module)
    for name, attribute in list(attributes.items()):
        if type(name) is not str or name in _PARTS_OF_MODULE:
            continue
        is_own = name in _OF_TORCH or name.startswith("__") or (is_wrapper and name != "training")
        yield None if is_own else name, attribute, ""


def _is_sharded(module: Any) -> bool:
    """Return whether FSDP2 has derived the module's class from the user's class: its attributes are the user's."""
    bases = (base for base in mro_of(module) if module_of(base).startswith("torch.distributed."))
    return any(name_of(base) == "FSDPModule" for base in bases)


def _optimizer(optimizer: Any) -> Iterator[Child]:
    """Yield the contents of `state_dict()`: the state by the number of its parameter, and the numbers of each group."""
    attributes = attributes_of(optimizer) or {}
    groups = attributes.get("param_groups")
    numbers: dict[int, int] = {}
    for number, group in enumerate(groups if type(groups) is list else ()):
        if type(group) is not dict:
            continue
        parameters = group.get("params")
        for parameter in parameters if type(parameters) is list else ():
            numbers.setdefault(id(parameter), len(numbers))
        yield from ((f"param_groups.{number}.{name}", item, "") for name, item in group.items() if name != "params")
        yield None, parameters, "parameters"
    state = attributes.get("state")
    for place, (key, item) in enumerate(
        list(dict.items(state)) if state is not None and is_kind_of(state, dict) else ()
    ):
        yield f"state.{numbers.get(id(key), key_name(key, place))}", item, "state"
    rest = (item for name, item in list(attributes.items()) if not is_one_of(name, (str,)) or name not in _OF_OPTIMIZER)
    yield from ((None, item, "") for item in rest)


_OF_OPTIMIZER = ("param_groups", "state")


def _function(function: Any) -> Iterator[Child]:
    """Yield the code of a function, its defaults, and its closure; not its globals."""
    yield "code", function.__code__, ""
    yield "defaults", function.__defaults__, ""
    yield "keyword defaults", function.__kwdefaults__, ""
    yield from zip(function.__code__.co_freevars, map(_contents, function.__closure__ or ()), _EMPTY, strict=False)
    yield from ((readable(name), item, "") for name, item in list(function.__dict__.items()) if type(name) is str)


_EMPTY = ("",) * 1000


def _contents(cell: Any) -> Any:
    try:
        return _get_cell(cell)
    except ValueError:  # it is empty
        return None


def _method(method: Any) -> Iterator[Child]:
    yield "self", method.__self__, ""
    yield "function", method.__func__, ""


def _partial(value: Any) -> Iterator[Child]:
    yield from ((name, _PARTIAL[name].__get__(value), "") for name in ("func", "args", "keywords"))
    yield from _attributes(value)


def _generator(value: Any) -> Iterator[Child]:
    """Yield the variables of a waiting generator or coroutine, and the place where it waits."""
    prefix = next(prefix for kind, prefix in _GENERATORS.items() if kind is type(value))
    frame = getattr(value, f"{prefix}_frame")
    yield "code", getattr(value, f"{prefix}_code"), ""
    yield "position", None if frame is None else frame.f_lasti, ""
    if frame is not None:
        yield from ((readable(name), item, "") for name, item in list(frame.f_locals.items()))
    yield "waits for", getattr(value, "gi_yieldfrom" if prefix == "gi" else f"{prefix}_await"), ""


def _class(kind: Any) -> Iterator[Child]:
    """Yield the contents of a class that a cell defines; other classes are compared by their names."""
    if module_of(kind) == "__main__":
        for name, item in list(_get_dict(kind).items()):
            if name not in _OWN_ATTRIBUTES and not is_one_of(item, _OF_C) and not name.startswith("_abc_"):
                yield readable(name), item, ""


def _property(value: Any) -> Iterator[Child]:
    yield from ((name, property.__dict__[name].__get__(value), "") for name in ("fget", "fset", "fdel"))


def _wrapped(value: Any) -> Iterator[Child]:
    yield "function", value.__func__, ""


def _nothing(_: Any) -> Iterator[Child]:
    yield from ()


_OPENED: dict[int, Callable[[Any], Iterator[Child]]] = {
    id(torch.Tensor): _nothing,
    id(torch.nn.Module): _module,
    id(torch.optim.Optimizer): _optimizer,
    id(dict): _dictionary,
    id(list): _sequence(list.__iter__),
    id(tuple): _tuple,
    id(set): _sequence(set.__iter__),
    id(frozenset): _sequence(frozenset.__iter__),
    id(deque): _sequence(deque.__iter__),
    id(SimpleNamespace): _attributes,
    id(UserDict): _user_dictionary,
    id(UserList): _user_dictionary,
    id(BaseException): _exception,
    id(FunctionType): _function,
    id(MethodType): _method,
    id(functools.partial): _partial,
    **{id(kind): _generator for kind in _GENERATORS},
    id(type): _class,
    id(property): _property,
    id(staticmethod): _wrapped,
    id(classmethod): _wrapped,
}
# Known to hold nothing of users, or to be code: not opened, with their subclasses.
_CLOSED = ids((ModuleType, BuiltinFunctionType, CodeType))
