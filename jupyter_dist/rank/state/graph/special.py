"""Objects of the standard library that pickle refuses, or would replace by something else."""

from __future__ import annotations

import _thread
import copyreg
import functools
import io
import pickle
import socket
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from IPython.core.getipython import get_ipython
from IPython.core.interactiveshell import InteractiveShell
from torch.nn.parallel import DistributedDataParallel

from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.collectives.revival import models
from jupyter_dist.rank.state.process import groups

from . import marks

Reducer = Callable[[Any], Any]

_reduce_of_exceptions: Any = BaseException.__reduce__

_OF_RANKS, _OWN = "jupyter_dist.rank.", "jupyter_dist.rank.state."
_STANDARD_STREAMS = ("stdin", "stdout", "stderr")


def reducer_of(kind: type) -> Reducer | None:
    """Return the function that reduces the objects of a class, or returns NotImplemented; None: pickle reduces them."""
    if kind in REDUCERS:
        return REDUCERS[kind]
    if any(kind is type(getattr(sys, name, None)) for name in _STANDARD_STREAMS):
        return _reduce_stream
    return _reducer_below(kind)


def _reducer_below(kind: type) -> Reducer | None:
    module = kind.__module__
    if type(module) is str and module.startswith(_OF_RANKS) and not module.startswith(_OWN):
        return _refuse_part
    if issubclass(kind, io.IOBase) and not issubclass(kind, (io.StringIO, io.BytesIO)):
        return _refuse_file
    if issubclass(kind, BaseException) and getattr(kind, "__reduce__", None) is _reduce_of_exceptions:
        return _reduce_exception
    if torch_compat.is_sharded(kind):
        return _reduce_sharded_module
    return next((reducer for base, reducer in _BY_BASE.items() if issubclass(kind, base)), None)


def _reduce_stream(value: Any) -> Any:
    for name in _STANDARD_STREAMS:
        if value is getattr(sys, name, None):
            return getattr, (sys, name)
    reduce = _reducer_below(type(value))
    return NotImplemented if reduce is None else reduce(value)


def _refuse_part(_value: Any) -> NoReturn:
    raise pickle.PicklingError("it holds a part of the rank")


def _refuse_file(value: Any) -> NoReturn:
    refuse(value, "_io.TextIOWrapper")


def _reduce_thread(thread: threading.Thread) -> Any:
    if thread.is_alive():
        refuse(thread, "threading.Thread")
    return NotImplemented


def _reduce_module(module: Any) -> Any:
    if "parametrizations" in vars(module).get("_modules", ()):
        return _make_instance, (type(module),), vars(module)  # its own method refuses: its class is made for it
    return NotImplemented


def refuse(value: Any, name: str = "") -> NoReturn:
    """Raise the error of pickle for an object that cannot be written."""
    kind = type(value)
    known = f"{kind.__module__}.{kind.__name__}".removeprefix("builtins.")
    raise TypeError(f"cannot pickle '{name or known}' object")


def _reduce_sharded_module(module: Any) -> Any:
    """Reduce a module of FSDP2, whose `__new__` would make a plain module."""
    reduced = module.__reduce_ex__(2)
    return (_make_instance, (type(module),), *reduced[2:])


def _make_instance(kind: type) -> Any:
    return object.__new__(kind)


def _reduce_data_parallel(model: Any) -> Any:
    """Reduce a DDP model, whose own method refuses other process groups than the default one."""
    state = {name: value for name, value in vars(model).items() if name not in ("reducer", "logger")}
    return _make_instance, (type(model),), state, None, None, _set_data_parallel


def _set_data_parallel(model: Any, state: dict[str, Any]) -> None:
    vars(model).update(state, reducer=None, logger=None)
    models.make_reducer(model)


def _reduce_exception(error: BaseException) -> Any:
    """Reduce an exception without calling its `__init__` again, whose arguments are not known."""
    return _make_exception, (type(error), error.args), {**vars(error), **slots_of(error)} or None


def slots_of(value: Any) -> dict[str, Any]:
    """Return the values in the slots of an object."""
    return {name: getattr(value, name) for name in slot_names(type(value)) if hasattr(value, name)}


def slot_names(kind: type) -> list[str]:
    """Return the names of the slots of a class, private ones as Python has changed them."""
    names: list[str] = copyreg._slotnames(kind)  # type: ignore[attr-defined]
    return names


def _make_exception(kind: type[BaseException], arguments: tuple[Any, ...]) -> BaseException:
    error = kind.__new__(kind)
    error.args = arguments
    return error


def _reduce_weak_reference(reference: Any) -> Any:
    if reference.__callback__ is not None:
        raise pickle.PicklingError("it holds a weak reference with a callback")
    referent: Any = reference()
    return weakref.ref, (_Gone() if referent is None else referent,)


class _Gone:
    """An object that no variable has: a weak reference to it is dead."""


def _reduce_weak_mapping(mapping: Any) -> Any:
    return type(mapping), (), None, None, iter(list(mapping.items()))


def _reduce_lock(lock: Any) -> Any:
    """Reduce a free lock; a lock that is held belongs to a thread."""
    if lock.locked() if hasattr(lock, "locked") else "unlocked" not in repr(lock):
        raise TypeError("cannot pickle '_thread.lock' object")
    return (threading.Lock if type(lock) is _thread.LockType else threading.RLock), ()


def _reduce_cached_function(cached: Any) -> Any:
    parameters = cached.cache_parameters()
    arguments = (cached.__wrapped__, parameters["maxsize"], parameters["typed"])
    return _make_cached_function, arguments, {name: one for name, one in vars(cached).items() if name != "__wrapped__"}


def _make_cached_function(function: Any, maxsize: int | None, typed: bool) -> Any:
    return functools.lru_cache(maxsize, typed)(function)


def _reduce_memory_view(view: memoryview) -> Any:
    whole = memoryview(view.obj)
    if (view.format, view.shape, view.strides) != (whole.format, whole.shape, whole.strides):
        raise pickle.PicklingError("it holds a part of a memoryview")
    return memoryview, (view.obj,)


_cached = functools.lru_cache(lambda: None)

REDUCERS: dict[type, Reducer] = {
    io.TextIOWrapper: _reduce_stream,
    socket.socket: refuse,
    weakref.ref: _reduce_weak_reference,
    weakref.WeakKeyDictionary: _reduce_weak_mapping,
    weakref.WeakValueDictionary: _reduce_weak_mapping,
    _thread.LockType: _reduce_lock,
    type(threading.RLock()): _reduce_lock,
    type(_cached): _reduce_cached_function,
    memoryview: _reduce_memory_view,
    types.GeneratorType: refuse,
}

_BY_BASE: dict[type, Reducer] = {
    threading.Thread: _reduce_thread,
    InteractiveShell: lambda _: (get_ipython, ()),
    DistributedDataParallel: _reduce_data_parallel,
    torch.nn.Module: _reduce_module,
    torch.distributed.ProcessGroup: lambda group: (marks.process_group, (groups.name_of(group),)),
}
