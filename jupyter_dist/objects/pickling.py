"""Pickle 5, extended: tensors without extra copies, and functions and classes of the notebook by value."""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from jupyter_dist.protocol.accelerators import DEVICE_TYPES
from jupyter_dist.protocol.errors import JupyterDistError

from . import staging

PYTHON = tuple(sys.version_info[:2])
# Set on a class that was sent by value: a later class with the same name replaces it.
CAME = "__jupyter_dist_came__"


def dumps(
    value: Any, buffer_callback: Callable[[pickle.PickleBuffer], object] | None = None, *, stages: bool = False
) -> bytes:
    """Pickle a value; its large buffers go to the callback. Exceptions of the value's own code pass through.

    Args:
        value: The value.
        buffer_callback: Called with each large buffer.
        stages: Leave large tensors on their device: the callback gets places without bytes (staging.py).
    """
    file = io.BytesIO()
    pickler = _Pickler(file, protocol=5, buffer_callback=buffer_callback)
    pickler.stages = stages
    pickler.dump(value)
    return file.getvalue()


class _Pickler(pickle.Pickler):
    stages = False

    def reducer_override(self, obj: Any) -> Any:
        """Called by pickle for every object without a built-in rule."""
        torch = sys.modules.get("torch")
        if torch is not None and type(obj) is torch.storage.TypedStorage:
            return _reduce_storage(obj, stages=self.stages)
        if isinstance(obj, BaseException) and _needs_help(type(obj)):
            return _exception, (type(obj), obj.args), vars(obj) or None
        if isinstance(obj, type | types.FunctionType) and is_of_notebook(obj):
            return _bring, (obj.__qualname__, isinstance(obj, type), PYTHON, by_value(obj))
        return NotImplemented


def _needs_help(cls: type[BaseException]) -> bool:
    """Whether pickle would call an __init__ written in Python, with `args`, which need not be its arguments."""
    own_way = any(name in vars(base) for base in cls.__mro__[:-1] if not _is_builtin(base) for name in _WAYS_TO_PICKLE)
    return isinstance(cls.__init__, types.FunctionType) and not own_way


_WAYS_TO_PICKLE = ("__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__")


def _is_builtin(cls: type) -> bool:
    return cls.__module__ == "builtins"


def _exception(cls: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """Called by pickle to load an exception without its own __init__."""
    builtin: Any = next(base for base in cls.__mro__ if _is_builtin(base))
    error: BaseException = builtin.__new__(cls, *args)
    builtin.__init__(error, *args)
    return error


def is_of_notebook(obj: Any) -> bool:
    """Whether other processes cannot import a class or function by name."""
    return obj.__module__ in ("__main__", None) or obj.__module__ not in sys.modules or "<" in obj.__qualname__


def by_value(obj: Any) -> bytes | None:
    """Return a class or function, pickled with its definition; None without cloudpickle."""
    try:
        import cloudpickle  # noqa: PLC0415  (a rank's environment may not have it)
    except ImportError:
        return None
    if not hasattr(cloudpickle, "Pickler"):  # a file of the user's with that name
        return None

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            reduced = super().reducer_override(value)
            return with_slots(value, reduced) if isinstance(value, type) else reduced

    data = io.BytesIO()
    Pickler(data, protocol=5).dump(obj)
    return data.getvalue()


def with_slots(kind: type, reduced: Any) -> Any:
    """Return a class as cloudpickle reduces it, and its slots, which cloudpickle leaves out."""
    own = vars(kind)
    if "__slots__" not in own or not isinstance(reduced, tuple) or reduced[0].__name__ != "_make_skeleton_class":
        return reduced
    if typing.NamedTuple in own.get("__orig_bases__", ()):  # which makes the slots itself, and takes none
        return reduced
    maker, arguments, (body, more), *rest = reduced
    slots = {
        name for name, part in own.items() if type(part) is types.MemberDescriptorType and part.__objclass__ is kind
    }
    beside = {name for name in ("__dict__", "__weakref__") if type(own.get(name)) is types.GetSetDescriptorType}
    fields = {**arguments[3], "__slots__": tuple(sorted(slots | beside))}  # private names as Python has changed them
    body = {name: part for name, part in body.items() if name not in slots}
    return (maker, (*arguments[:3], fields, *arguments[4:]), (body, more), *rest)


def _bring(name: str, is_class: bool, python: tuple[int, int], data: bytes | None) -> Any:
    """Called by pickle to load a class or function of a notebook."""
    main = sys.modules["__main__"]
    own = getattr(main, name, None) if is_class else None
    if isinstance(own, type) and CAME not in vars(own):
        return own  # defined here, too: isinstance() must work
    hint = "Run the cell that defines it here first."
    if data is None or python != PYTHON:
        why = "the sender has no cloudpickle" if data is None else f"it comes from Python {python}"
        raise JupyterDistError("cannot_receive", f"Something is missing here: '{name}', and {why}.", hint)
    try:
        import cloudpickle  # noqa: PLC0415
    except ImportError as err:
        message = f"Something is missing here: '{name}', and the package cloudpickle, which would bring it."
        raise JupyterDistError("cannot_receive", message, f"{hint} Or: pip install cloudpickle.") from err
    found = cloudpickle.loads(data)
    if is_class:
        setattr(found, CAME, True)
        if name.isidentifier():
            setattr(main, name, found)
    return found


def _reduce_storage(storage: Any, *, stages: bool) -> Any:
    kind, content = content_of(storage._untyped_storage, stages=stages)
    return _storage, (storage.dtype, kind, pickle.PickleBuffer(content))


def content_of(untyped: Any, *, stages: bool) -> tuple[str | None, Any]:
    """Return the kind of device that a tensor's storage is on, None for the CPU, and its bytes or their place."""
    kind = untyped.device.type if untyped.device.type in DEVICE_TYPES else None
    if stages and staging.is_staged(untyped):
        return kind, staging.OnDevice.of(untyped)
    return kind, _bytes_of(untyped.cpu())  # no copy if it is on the CPU


def _bytes_of(storage: Any) -> Any:
    """Return the storage's bytes, which keep it alive."""
    found = (ctypes.c_ubyte * storage.nbytes()).from_address(storage.data_ptr() or 1)
    found.owner = storage
    return found


def _storage(dtype: Any, kind: str | None, data: Any) -> Any:
    """Called by pickle to load a tensor."""
    torch = sys.modules["torch"]  # pickle has imported it for the dtype
    untyped = storage_of(memoryview(data), kind)
    return torch.storage.TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


def storage_of(view: memoryview, kind: str | None) -> Any:
    """Return a storage with these bytes: on the rank's device; on the CPU in a kernel that uses no device."""
    torch = sys.modules["torch"]
    if view.nbytes == 0:
        untyped = torch.UntypedStorage(0)
    elif view.readonly:
        untyped = torch.frombuffer(bytearray(view), dtype=torch.uint8).untyped_storage()
    else:
        untyped = torch.frombuffer(view, dtype=torch.uint8).untyped_storage()
    module = getattr(torch, kind, None) if kind in DEVICE_TYPES else None
    if module is not None and module.is_available() and ("LOCAL_RANK" in os.environ or module.is_initialized()):
        untyped = torch.UntypedStorage(untyped.nbytes(), device=kind).copy_(untyped)
    return untyped
