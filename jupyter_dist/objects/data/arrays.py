"""Arrays and scalars of NumPy. No bytes of the sender are ever read as pointers: arrays of objects travel as a list."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from .graph import DataReader, DataWriter, NotDataError, ObjectKind, text, wholes

_DTYPE = re.compile(r"[<>|][biufcSUV]\d{1,9}|[<>|][mM]8(\[\d{0,9}(generic|Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?")
_MAX_CHARACTER = 0x10FFFF


def dtype_named(name: Any) -> Any:
    """Return a dtype without objects and fields."""
    if not _DTYPE.fullmatch(text(name)):
        raise NotDataError(f"the dtype {name!r:.40}")
    found = np.dtype(name)
    if found.hasobject or found.itemsize == 0:
        raise NotDataError(f"the dtype {name!r:.40}")
    return found


def _name_of(dtype: Any) -> str:
    name: str = dtype.str
    if dtype.metadata is None and _DTYPE.fullmatch(name) and dtype.itemsize and np.dtype(name) == dtype:
        return name
    hint = "; its fields x[name] can be pulled" if dtype.names else ""
    raise NotDataError(f"the dtype {dtype}{hint}")


def array_of(view: memoryview, dtype: Any, shape: tuple[int, ...], order: Any = "C") -> Any:
    """Return an array over bytes, which must be as many as it needs, and values of its dtype."""
    if view.nbytes != math.prod(shape) * dtype.itemsize:
        raise NotDataError(f"{view.nbytes} bytes for an array of {shape} and {dtype}")
    flat = np.frombuffer(view, dtype) if view.nbytes else np.empty(0, dtype)
    if dtype.kind == "b" and flat.size and flat.view(np.uint8).max() > 1:
        raise NotDataError("truth values that are none")
    if dtype.kind == "U" and flat.size and flat.view(f"{dtype.byteorder}u4").max() > _MAX_CHARACTER:
        raise NotDataError("characters that are none")
    return flat.reshape(shape, order="F" if order == "F" else "C")


def _array(writer: DataWriter, found: Any) -> list[Any]:
    name = _name_of(found.dtype)
    order: Any = "F" if found.flags.f_contiguous and not found.flags.c_contiguous else "C"
    whole_array = np.asarray(found, order=order)
    flat = whole_array.reshape(-1, order=order).view(np.uint8) if found.size else b""
    return [name, list(found.shape), order, writer.data(memoryview(flat))]


def _make_array(reader: DataReader, name: Any, shape: Any, order: Any, place: Any) -> Any:
    return array_of(reader.data(place), dtype_named(name), wholes(shape, 0), order)


def _objects(writer: DataWriter, found: Any) -> list[Any]:
    return [list(found.shape), writer.items(found.ravel().tolist())]


def _make_objects(reader: DataReader, shape: Any, items: Any) -> Any:
    values = reader.all(items)
    sizes = wholes(shape, 0)
    if math.prod(sizes) != len(values):
        raise NotDataError(f"{len(values)} objects for an array of {sizes}")
    made: Any = np.empty(len(values), object)
    for number, value in enumerate(values):  # one by one: NumPy would look into containers
        made[number] = value
    return made.reshape(sizes)


def _scalar(writer: DataWriter, found: Any) -> list[Any]:
    return [_name_of(found.dtype), writer.data(memoryview(found.tobytes()))]


def _make_scalar(reader: DataReader, name: Any, place: Any) -> Any:
    return array_of(reader.data(place), dtype_named(name), (1,))[0]


def _masked(writer: DataWriter, found: Any) -> list[Any]:
    mask = None if found.mask is np.ma.nomask else np.asarray(found.mask)
    return [writer.item(np.asarray(found.data)), writer.item(mask), writer.item(found.fill_value)]


def _make_masked(reader: DataReader, data: Any, mask: Any, fill: Any) -> Any:
    found = reader.exact(mask, np.ndarray, type(None))
    filler = reader.at(fill)
    made = np.ma.MaskedArray(reader.exact(data, np.ndarray), np.ma.nomask if found is None else found)
    if filler is not None:
        made.fill_value = filler
    return made


def _make_dtype(_reader: DataReader, name: Any) -> Any:
    return np.dtype(object) if name == "O" else dtype_named(name)


_ARRAY = ObjectKind("numpy.array", _array, _make_array)
_OBJECTS = ObjectKind("numpy.objects", _objects, _make_objects)
_SCALAR = ObjectKind("numpy.scalar", _scalar, _make_scalar)
_MASKED = ObjectKind("numpy.masked", _masked, _make_masked)
_KIND_OF_DTYPE = ObjectKind(
    "numpy.dtype", lambda _writer, found: ["O" if found.kind == "O" else _name_of(found)], _make_dtype
)
NAMED = {kind.name: kind for kind in (_ARRAY, _OBJECTS, _SCALAR, _MASKED, _KIND_OF_DTYPE)}


def kind_of(value: Any) -> ObjectKind | None:
    """Return the kind of an object of NumPy."""
    cls = type(value)
    if cls is np.ndarray:
        return _OBJECTS if value.dtype.kind == "O" else _ARRAY
    if cls is np.ma.MaskedArray:
        return _MASKED
    if issubclass(cls, np.dtype):
        return _KIND_OF_DTYPE
    is_scalar = issubclass(cls, np.generic) and np.dtype(cls).type is cls and cls is not np.object_
    return _SCALAR if is_scalar else None
