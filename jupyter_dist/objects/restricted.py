"""Loads values that processes on other machines sent, without running code that they choose (decision 39).

A pickle names the classes and functions that it calls. Here only the list below is allowed, which makes numbers, texts,
containers, arrays, tensors and data frames, and classes that the user adds to torch's own list of safe globals.
"""

from __future__ import annotations

import importlib
import io
import pickle
import sys
import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from jupyter_dist.protocol.errors import JupyterDistError

_OWN = f"{__package__}.pickling"
_NUMPY_CORE = ("numpy._core.", "numpy.core.")
_NAMES: dict[str, frozenset[str]] = {
    module: frozenset(names.split())
    for module, names in {
        "builtins": "bool int float complex str bytes bytearray list tuple dict set frozenset slice range object"
        " Ellipsis NotImplemented",
        "collections": "OrderedDict defaultdict deque Counter",
        "copyreg": "_reconstructor",
        "datetime": "date datetime time timedelta timezone",
        "decimal": "Decimal",
        "fractions": "Fraction",
        "pathlib": "Path PosixPath PurePosixPath PureWindowsPath",
        "pathlib._local": "Path PosixPath PurePosixPath PureWindowsPath",
        "types": "SimpleNamespace",
        "uuid": "UUID",
        "zoneinfo": "ZoneInfo._unpickle",
        "numpy": "ndarray dtype",
        "numpy.ma": "MaskedArray",
        "numpy.ma.core": "_mareconstruct MaskedArray",
        **{f"{core}multiarray": "_reconstruct scalar" for core in _NUMPY_CORE},
        **{f"{core}numeric": "_frombuffer" for core in _NUMPY_CORE},
        "torch": "Size device Tensor",
        "torch._tensor": "Tensor",
        "torch.nn.parameter": "Parameter Buffer",
        "torch._utils": "_rebuild_tensor _rebuild_tensor_v2 _rebuild_parameter _rebuild_parameter_with_state"
        " _rebuild_sparse_tensor _rebuild_qtensor _rebuild_nested_tensor _rebuild_meta_tensor_no_storage",
        "torch.serialization": "_get_layout",
        "pandas": "DataFrame Series Timestamp Timedelta Period Interval NA NaT",
        "pandas._libs.internals": "_unpickle_block",
        "pandas._libs.arrays": "__pyx_unpickle_NDArrayBacked",
        "pandas._libs.tslibs.timestamps": "_unpickle_timestamp Timestamp",
        "pandas._libs.tslibs.timedeltas": "_timedelta_unpickle Timedelta",
        "pandas._libs.tslibs.nattype": "_nat_unpickle",
        "pandas._libs.tslibs.period": "Period",
        "pandas._libs.interval": "Interval",
        "pandas._libs.missing": "NAType NA",
        "pandas.core.frame": "DataFrame",
        "pandas.core.series": "Series",
        "pandas.core.flags": "Flags",
        "pandas.core.internals.managers": "BlockManager SingleBlockManager",
        "pandas.core.internals.blocks": "new_block",
        "pandas.core.indexes.base": "_new_Index Index",
        "pandas.core.indexes.datetimes": "_new_DatetimeIndex DatetimeIndex",
        "pandas.core.indexes.period": "_new_PeriodIndex PeriodIndex",
        "pyarrow.lib": "_restore_array type_for_alias py_buffer chunked_array",  # texts in data frames of pandas 3
        _OWN: "_storage _exception",
    }.items()
}
# Modules whose classes of this kind are harmless, as (prefix of the module, name of the base class).
_KINDS = (
    ("builtins", "builtins", "BaseException"),
    ("numpy", "numpy", "generic"),
    ("numpy.dtypes", "numpy", "dtype"),
    ("torch.nn.modules.", "torch.nn", "Module"),
    ("pandas", "pandas", "Index"),
    ("pandas", "pandas.api.extensions", "ExtensionDtype"),
    ("pandas", "pandas.api.extensions", "ExtensionArray"),
    ("pandas.arrays", "pandas.api.extensions", "ExtensionArray"),
    ("pandas.core.indexes.", "pandas", "Index"),
    ("pandas.core.arrays.", "pandas.api.extensions", "ExtensionArray"),
    ("pandas.core.arrays.", "pandas.api.extensions", "ExtensionDtype"),
    ("pandas.core.dtypes.dtypes", "pandas.api.extensions", "ExtensionDtype"),
)
_OF_TORCH = ("dtype", "layout", "memory_format", "qscheme")  # whose values are globals of torch
_ARROW = ("pyarrow.lib", "_restore_array")
_MISSING = object()


class RefusedError(Exception):
    """A value needs this class or function, which is not allowed."""


class _Unpickler(pickle._Unpickler):  # in Python: the one in C lets a pickle call, and change, whatever it has made
    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)

    def __init__(self, data: memoryview, buffers: Sequence[memoryview]) -> None:
        super().__init__(io.BytesIO(data), buffers=buffers)
        self._found: dict[int, Any] = {}  # the globals that the pickle has named, by identity

    def find_class(self, module: str, name: str) -> Any:
        found = _allowed(module, name)
        if found is _MISSING:
            raise RefusedError(f"{module}.{name}")
        self._found[id(found)] = found
        return found

    def _check_called(self, function: Any) -> None:
        if id(function) not in self._found or _is_argument_only(function):
            raise RefusedError(f"a call of {getattr(function, '__qualname__', type(function).__name__)}")

    def load_reduce(self) -> None:
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        self._check_called(stack[-2])
        _load_reduce(self)

    def load_newobj(self) -> None:
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        self._check_called(stack[-2])
        _load_newobj(self)

    def load_newobj_ex(self) -> None:
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        self._check_called(stack[-3])
        _load_newobj_ex(self)

    def load_build(self) -> None:
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        if isinstance(stack[-2], type | types.FunctionType | types.ModuleType):
            raise RefusedError("a change of a class or function")
        if _is_dtype(stack[-2]):
            _check_dtype(stack[-2], stack[-1])
        _load_build(self)

    def load_old(self) -> None:
        raise RefusedError("an instruction of old pickles")

    dispatch.update({
        pickle.REDUCE[0]: load_reduce,
        pickle.NEWOBJ[0]: load_newobj,
        pickle.NEWOBJ_EX[0]: load_newobj_ex,
        pickle.BUILD[0]: load_build,
        pickle.OBJ[0]: load_old,
        pickle.INST[0]: load_old,
    })  # fmt: skip


_load_reduce: Callable[[Any], None]
_load_newobj: Callable[[Any], None]
_load_newobj_ex: Callable[[Any], None]
_load_build: Callable[[Any], None]
_load_reduce, _load_newobj, _load_newobj_ex, _load_build = (
    pickle._Unpickler.dispatch[code[0]] for code in (pickle.REDUCE, pickle.NEWOBJ, pickle.NEWOBJ_EX, pickle.BUILD)
)


def loads(data: memoryview, buffers: Sequence[memoryview]) -> Any:
    """Return the value of a pickle.

    Raises:
        RefusedError: the pickle needs a class or function that is not allowed.
        Exception: the pickle is damaged, or needs a package that is not installed here.
    """
    return _Unpickler(data, buffers).load()


def refusal(refused: RefusedError) -> JupyterDistError:
    """Return the error for a value that was refused."""
    message = f"The value needs {refused}, which could run code here: it comes from another machine."
    hint = (
        "Take its data instead: numbers, texts, containers, arrays, tensors, data frames."
        " If you trust it, allow the class with"
        " torch.serialization.add_safe_globals([...]), or all values with group.trust_nodes = True."
    )
    return JupyterDistError("cannot_receive", message, hint)


def _allowed(module: str, name: str) -> Any:
    """Return a class, function or constant that a pickle may name."""
    if name in _NAMES.get(module, ()):
        found = _attribute(module, name)
        return partial(_checked_array, found) if (module, name) == _ARROW else found
    found = _safe_of_torch(module, name)
    if found is not _MISSING or not name.isidentifier():
        return found
    if module == "torch":
        value = getattr(importlib.import_module("torch"), name, _MISSING)
        return value if type(value) in _types_of_torch() else _MISSING
    for prefix, home, base in _KINDS:
        if module == prefix or (prefix.endswith(".") and module.startswith(prefix)):
            value = _attribute(module, name)
            if isinstance(value, type) and issubclass(value, _attribute(home, base)):
                return value
    return _MISSING


def _checked_array(restore: Callable[[Any], Any], data: Any) -> Any:
    """Make an array of Arrow, and check its offsets, which come from the sender, against the memory that there is."""
    array = restore(data)
    array.validate(full=True)
    return array


def _is_argument_only(found: Any) -> bool:
    """Whether pickles name it as an argument only: called, it could take any bytes for Python objects."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and found is numpy.ndarray


def _is_dtype(found: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(found, numpy.dtype)


def _check_dtype(dtype: Any, state: Any) -> None:
    """Raise RefusedError if a dtype has wrong flags: they decide whether its bytes are read as Python objects."""
    _, _, subdtype, _, fields, size, _, flags, *_ = state
    if subdtype is not None or fields is not None:
        raise RefusedError("a dtype with fields")
    if flags != dtype.flags or size not in (-1, dtype.itemsize):
        raise RefusedError("a dtype that is not what it says")


def _attribute(module: str, name: str) -> Any:
    value: Any = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _types_of_torch() -> set[type]:
    torch = sys.modules["torch"]  # `_allowed` has imported it
    return {getattr(torch, name) for name in _OF_TORCH}


def _safe_of_torch(module: str, name: str) -> Any:
    """Return a class or function that the user has allowed with torch.serialization.add_safe_globals."""
    serialization = sys.modules.get("torch.serialization")
    safe: list[Any] = getattr(serialization, "get_safe_globals", list)()
    for entry in safe:
        value, full = entry if isinstance(entry, tuple) else (entry, f"{entry.__module__}.{entry.__qualname__}")
        if full == f"{module}.{name}":
            return value
    return _MISSING
