"""Lists a value's parts by path: tensors, other values as text, and parts that cannot be compared, with the reason."""

from __future__ import annotations

import datetime
import decimal
import enum
import pathlib
import re
import sys
import uuid
import zlib
from types import BuiltinFunctionType, CodeType, EllipsisType, FunctionType, ModuleType, NotImplementedType
from typing import Any, NamedTuple

import torch

from .opening import (
    MAX_DEPTH,
    StepBudget,
    attributes_of,
    children,
    ids,
    is_kind_of,
    is_one_of,
    is_opened,
    is_tensor,
    is_weak,
    module_of,
    name_of,
    readable,
)
from .tensors import Look, is_any_tensor, look

MAX_NODES = 50_000
MAX_CHARS = 80  # of a text; a longer text has its length and checksum, too
MAX_BITS = 256
MAX_CELLS = 2_000_000  # of a frame of pandas
MAX_TEXT_CELLS = 100_000
MAX_CONSTANTS = 1000  # of a function's code

_qualname_of = type.__dict__["__qualname__"].__get__
_SHOWN = ids((bool, float, complex, type(None), EllipsisType, NotImplementedType, range))
_SHOWN_OF_LIBRARIES = ids(
    (
        torch.dtype,
        torch.device,
        torch.layout,
        torch.memory_format,
        decimal.Decimal,
        uuid.UUID,
        datetime.date,
        datetime.timedelta,
        datetime.timezone,
    )
)
_PATHS = ids((pathlib.PosixPath, pathlib.PurePosixPath, pathlib.PureWindowsPath))
_SETS = (set, frozenset)
_DATES = (datetime.datetime, datetime.time)
_TUPLES = (tuple, frozenset)


class ValuePart(NamedTuple):
    """A place in a value: a tensor to compare, a plain value as text, or why there is neither."""

    path: str
    what: str  # "tensor", "value" or "closed"
    value: Any  # of a tensor
    text: str


class Walk:
    """The parts of a value, in order.

    Attributes:
        nodes: the parts that were found.
        is_whole: False: the steps were not enough.
    """

    def __init__(self, value: Any, steps: StepBudget, wanted: str = "", *, is_brief: bool = False) -> None:
        """Walk through a value, or through its part under a path.

        Args:
            value: the value to look at.
            steps: the limit of the walk; reduced by the objects that were looked at.
            wanted: the path.
            is_brief: Leave tensors as they are, when their numbers are not read: parts of some are copies.
        """
        self.nodes: list[ValuePart] = []
        self.is_whole = True
        self._steps = steps
        self._is_brief = is_brief
        self._paths: set[str] = set()
        # With the objects, so that none is freed and its id reused.
        self._seen: dict[int, tuple[str, Any]] = {}
        self._above: set[int] = set()
        self._descend("", value, wanted, 0)

    def _descend(self, path: str, value: Any, wanted: str, depth: int) -> None:
        """Descend to the wanted path; parts beside this path are not looked at."""
        if not wanted or path == wanted:
            self._visit("", value, depth)
            return
        for name, child in _parts(value):
            at = f"{path}.{name}" if path else name
            if at == wanted or wanted.startswith(f"{at}."):
                self._descend(at, child, wanted, depth + 1)
            elif at.startswith(f"{wanted}."):  # the groups of an optimizer have names with dots
                self._visit(at.removeprefix(f"{wanted}."), child, depth + 1)

    def _visit(self, path: str, value: Any, depth: int) -> None:
        if self._steps.left <= 0 or depth > MAX_DEPTH:
            self.is_whole = False
            return
        self._steps.left -= 1
        if is_weak(value):
            return
        text = text_of(value)
        if text is not None:
            self._add(path, "value", text)
        elif (known := self._seen.get(id(value))) is not None:
            self._add(path, "value", f"the same object as {known[0] or 'the variable'}")
        elif is_kind_of(value, set) or is_kind_of(value, frozenset):
            self._add(path, "closed", "it is a set of many items, or of objects, which has no order")
        elif id(value) not in self._above:
            self._open(path, value, depth)

    def _open(self, path: str, value: Any, depth: int) -> None:
        """Look into an object that was not seen before."""
        if not is_one_of(value, _TUPLES):  # Python itself shares equal ones
            self._seen[id(value)] = (path, value)
        self._above.add(id(value))
        if is_any_tensor(value):
            self._look(path, value, depth)
        else:
            parts = _parts(value)
            if not is_opened(value):
                self._add(path, "closed", f"a {name_of(type(value))} cannot be read")
            elif not parts:
                self._add(path, "value", f"{name_of(type(value))}, empty")
            for name, child in parts:
                self._visit(f"{path}.{name}" if path else name, child, depth + 1)
        self._above.discard(id(value))

    def _look(self, path: str, value: Any, depth: int) -> None:
        found = Look(value) if self._is_brief and is_tensor(value) else look(value)
        if found.leaf is not None:
            leaf = value if is_dtensor(found.leaf) else found.leaf
            self._add(path, "tensor", "", leaf)
        if found.why:
            self._add(path, "closed", found.why)
        if is_kind_of(value, torch.Tensor) and can_require_grad(value):
            self._visit(f"{path}.requires_grad" if path else "requires_grad", requires_grad(value), depth + 1)
        for name, part in found.parts:
            at = f"{path}.{name}" if path else name
            if is_tensor(part) and is_tensor(value):  # its own indices and values
                self._add(at, "tensor", "", part)
            else:
                self._visit(at, part, depth + 1)

    def _add(self, path: str, what: str, text: str, value: Any = None) -> None:
        path = path if path.isascii() else readable(path)
        number, known = 2, path
        while path in self._paths:
            path, number = f"{known} ({number})", number + 1
        self._paths.add(path)
        self.nodes.append(ValuePart(path, what, value, text))


def _parts(value: Any) -> list[tuple[str, Any]]:
    if is_any_tensor(value):
        return look(value).parts
    return [(name, child) for name, child, _ in children(value) if name is not None]


_of_base = torch.Tensor.__mro__[1].__dict__
_requires_grad, _dtype_of = _of_base["requires_grad"].__get__, _of_base["dtype"].__get__


def can_require_grad(tensor: Any) -> bool:
    """Return whether the dtype of a tensor can have gradients."""
    dtype = _dtype_of(tensor)
    return bool(dtype.is_floating_point or dtype.is_complex)


def requires_grad(tensor: Any) -> bool:
    """Return whether a tensor of any subclass requires gradients."""
    return bool(_requires_grad(tensor))


def is_dtensor(value: Any) -> bool:
    """Return whether a value is a DTensor, by the class alone."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and type(value) is getattr(module, "DTensor", None)


def text_of(value: Any) -> str | None:
    """Return a plain value as text, within a length: equal texts are equal values; None for a value that has parts."""
    kind = id(type(value))
    if kind in _SHOWN or kind in _SHOWN_OF_LIBRARIES:
        return repr(value)
    if kind in _PATHS:
        return repr(str(value))
    for base, text in _BY_BASE:
        if is_kind_of(value, base):
            return text(value)
    if is_one_of(value, _DATES):
        return repr(value) if is_one_of(value.tzinfo, (type(None), datetime.timezone)) else None
    if is_one_of(value, _SETS) and len(value) <= MAX_CONSTANTS:
        texts = [text_of(item) for item in value]
        return _set_text(value, [text for text in texts if text is not None])
    return _of_numpy(value) or _of_pandas(value)


def _set_text(value: Any, texts: list[str]) -> str | None:
    if len(texts) < len(value):
        return None
    inside = shortened(", ".join(sorted(texts)))
    return f"{{{inside}}}" if texts else f"{name_of(type(value))}()"


def shortened(text: str) -> str:
    """Return a text as it is, or its begin, its length and its checksum."""
    if len(text) <= MAX_CHARS:
        return readable(text)
    checksum = zlib.crc32(text.encode("utf-8", "backslashreplace"))
    return f"{readable(text[:MAX_CHARS])}\u2026 ({len(text)} characters, checksum {checksum:08x})"


def _of_str(value: Any) -> str:
    plain = str.__getitem__(value, slice(None))
    if len(plain) <= MAX_CHARS:
        return readable(repr(plain))
    checksum = zlib.crc32(plain.encode("utf-8", "backslashreplace"))
    return f"{readable(repr(plain[:MAX_CHARS]))}\u2026 ({len(plain)} characters, checksum {checksum:08x})"


def _of_bytes(value: Any) -> str:
    size = len(memoryview(value))
    return f"{name_of(type(value))}: {size} bytes, checksum {zlib.crc32(value):08x}"


def _of_int(value: Any) -> str:
    if int.bit_length(value) <= MAX_BITS:
        return int.__repr__(value)
    size = (int.bit_length(value) + 8) // 8
    return f"an integer of {size} bytes, checksum {zlib.crc32(int.to_bytes(value, size, 'big', signed=True)):08x}"


def _of_function(function: Any) -> str | None:
    """Return the name of a function and a checksum of its code; None if the function has further parts."""
    if function.__closure__ or function.__dict__ or function.__kwdefaults__:
        return None
    defaults = [text_of(one) for one in function.__defaults__ or ()]
    if None in defaults:
        return None
    of_defaults = f", defaults {', '.join(filter(None, defaults))}" if defaults else ""
    return shortened(f"{readable(function.__name__)}(), {_of_code(function.__code__)}{of_defaults}")


def _of_code(code: CodeType) -> str:
    return f"code {_checksum_of_code(code, [MAX_CONSTANTS]):08x}"


def _checksum_of_code(code: CodeType, left: list[int]) -> int:
    """Return a checksum of a function's instructions, independent of its file and line."""
    names = (*code.co_names, *code.co_varnames, *code.co_freevars)
    checksum = zlib.crc32(" ".join(names).encode("utf-8", "backslashreplace"), zlib.crc32(code.co_code))
    for constant in code.co_consts:
        left[0] -= 1
        if left[0] < 0:
            break
        if type(constant) is CodeType:
            checksum = zlib.crc32(b"%d" % _checksum_of_code(constant, left), checksum)
        else:
            checksum = zlib.crc32(_constant(constant).encode("utf-8", "backslashreplace"), checksum)
    return checksum


def _constant(value: Any) -> str:
    if type(value) is tuple:
        return f"({', '.join(map(_constant, value))})"
    return text_of(value) or ""


def _of_builtin(value: Any) -> str | None:
    owner = value.__self__
    is_free = owner is None or type(owner) is ModuleType or is_kind_of(owner, type)
    return f"built-in {value.__name__}" if is_free else None


def _of_enum(value: Any) -> str | None:
    """Return the name of an enum member; for a combination of flags, its value."""
    attributes = attributes_of(value) or {}
    name = attributes.get("_name_")
    text = name if type(name) is str else text_of(attributes.get("_value_"))
    return None if text is None else f"{name_of(type(value))}.{readable(text)}"


def _of_class(kind: Any) -> str | None:
    """Return the name of a class of a module; None for a class of a cell, which has parts."""
    module = module_of(kind)
    return None if module == "__main__" else f"class {'.'.join(filter(None, (module, _qualname_of(kind))))}"


def _of_module(module: Any) -> str:
    name = (attributes_of(module) or {}).get("__name__")
    return f"module {name}" if type(name) is str else "module"


def _of_pattern(value: Any) -> str | None:
    return f"{text_of(value.pattern)}, flags {value.flags}" if is_one_of(value.pattern, (str, bytes)) else None


_BY_BASE: tuple[tuple[type, Any], ...] = (
    (enum.Enum, _of_enum),
    (str, _of_str),
    (int, _of_int),
    (float, float.__repr__),
    (complex, complex.__repr__),
    (bytes, _of_bytes),
    (bytearray, _of_bytes),
    (FunctionType, _of_function),
    (CodeType, _of_code),
    (BuiltinFunctionType, _of_builtin),
    (type, _of_class),
    (ModuleType, _of_module),
    (re.Pattern, _of_pattern),
)


def _of_pandas(value: Any) -> str | None:
    """Return the shape, the types and a checksum of the values of a frame, a series or an index of pandas."""
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return None
    kinds = (pandas.DataFrame, pandas.Series, pandas.Index, pandas.RangeIndex)
    if not any(type(value) is kind for kind in kinds) or value.size > MAX_CELLS:
        return None
    frame = value.to_frame() if type(value) is not pandas.DataFrame else value
    columns = [f"{name!r}: {dtype}" for name, dtype in zip(frame.columns, frame.dtypes, strict=True)]
    texts = [frame.iloc[:, index] for index, dtype in enumerate(frame.dtypes) if str(dtype) in ("object", "str")]
    # Texts take long, and to hash other objects would run their code.
    if sum(map(len, texts)) > MAX_TEXT_CELLS or not all(
        type(one) in (str, float, int, bool, type(None)) for text in texts for one in text
    ):
        return None
    hashed = pandas.util.hash_pandas_object(frame, index=True).to_numpy().tobytes()
    rows = f"{len(frame)} rows, checksum {zlib.crc32(hashed):08x}"
    return shortened(f"{type(value).__name__}: {rows}, {', '.join(columns)}")


def _of_numpy(value: Any) -> str | None:
    """Return a number of numpy as text: its dtypes and scalars are not Python's types."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if is_kind_of(value, numpy.generic):
        dtype = numpy.generic.__dict__["dtype"].__get__(value)
        is_plain = dtype.type is type(value) and dtype.kind in "biufcSUMm"
        return shortened(f"{dtype} {value.item()!r}") if is_plain else None
    return str(value) if is_kind_of(value, numpy.dtype) else None
