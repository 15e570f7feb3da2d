"""Tensors of torch, dense and sparse, with shared storages, and what describes them."""

from __future__ import annotations

import pickle
import re
from typing import Any

import torch

from jupyter_dist.objects import pickling

from .graph import DataReader, DataWriter, NotDataError, ObjectKind, flag, text, whole, wholes

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_CLASSES = {
    name: cls
    for name, cls in (
        ("Tensor", torch.Tensor),
        ("Parameter", torch.nn.Parameter),
        ("Buffer", getattr(torch.nn, "Buffer", None)),  # torch 2.5
    )
    if cls is not None
}
_MAX_ELEMENTS = 1 << 60


def _constant(kind: type, name: Any) -> Any:
    """Return a dtype, a layout or a memory format of torch."""
    found = getattr(torch, name, None) if _NAME.fullmatch(text(name)) else None
    if type(found) is not kind:
        raise NotDataError(f"{name!r:.40}, which is no {kind.__name__}")
    return found


def _of_constant(kind: type) -> ObjectKind:
    return ObjectKind(
        f"torch.{kind.__name__}",
        lambda _writer, found: [str(found).removeprefix("torch.")],
        lambda _reader, name: _constant(kind, name),
    )


def _storage(writer: DataWriter, storage: Any) -> list[Any]:
    kind, content = pickling.content_of(storage, stages=writer.stages)
    return [kind, writer.data(pickle.PickleBuffer(content).raw())]


def _make_storage(reader: DataReader, kind: Any, place: Any) -> Any:
    return pickling.storage_of(reader.data(place), None if kind is None else text(kind))


_STORAGE = ObjectKind("torch.storage", _storage, _make_storage)


def _tensor(writer: DataWriter, found: Any) -> list[Any]:
    plain = found.detach().resolve_conj().resolve_neg()
    storage = plain.untyped_storage()
    item = writer.once(("storage", storage.data_ptr(), storage.nbytes()), _STORAGE, storage)
    shape = [plain.storage_offset(), list(plain.size()), list(plain.stride())]
    return [_looks(found), item, str(found.dtype).removeprefix("torch."), shape]


def _make_tensor(reader: DataReader, looks: Any, storage: Any, dtype: Any, shape: Any) -> Any:
    offset, size, stride = shape
    found = reader.exact(storage, torch.UntypedStorage)
    made = torch.empty(0, dtype=_constant(torch.dtype, dtype), device=found.device)
    view = whole(offset, 0), wholes(size, 0), wholes(stride, 0)
    extent = _extent(*view)
    if (view[0] + extent) * made.itemsize > found.nbytes():
        raise NotDataError(f"a tensor of {view[1]} in {found.nbytes()} bytes")
    if made.dtype == torch.bool and extent:
        content = torch.empty(0, dtype=torch.uint8, device=found.device).set_(found, view[0], (extent,), (1,))
        if int(content.max()) > 1:
            raise NotDataError("truth values that are none")
    return _as(looks, made.set_(found, *view))


def _extent(offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """Return how many elements of the storage a tensor spans."""
    if len(size) != len(stride):
        raise NotDataError("a tensor with strides of another one")
    num_elements, last = 1, 0
    for length, step in zip(size, stride, strict=True):
        num_elements *= length
        last += (length - 1) * step
    if num_elements > _MAX_ELEMENTS or last > _MAX_ELEMENTS or offset > _MAX_ELEMENTS:
        raise NotDataError(f"a tensor of {size}")
    return last + 1 if num_elements else 0


def _looks(tensor: Any) -> list[Any]:
    return [next(name for name, cls in _CLASSES.items() if cls is type(tensor)), tensor.requires_grad]


def _as(looks: Any, tensor: Any) -> Any:
    name, grad = looks
    cls = _CLASSES[text(name)]
    if cls is torch.nn.Parameter:
        return cls(tensor, requires_grad=flag(grad))
    made = tensor if cls is torch.Tensor else cls(tensor)
    return made.requires_grad_(flag(grad))


def _sparse(writer: DataWriter, found: Any) -> list[Any]:
    plain = found.detach()
    parts = [writer.item(plain._indices()), writer.item(plain._values())]
    return [_looks(found), parts, list(plain.size()), plain.is_coalesced()]


def _make_sparse(reader: DataReader, looks: Any, parts: Any, size: Any, coalesced: Any) -> Any:
    kind = flag(coalesced) or None
    made = torch.sparse_coo_tensor(*_own(reader, parts), wholes(size, 0), is_coalesced=kind, check_invariants=True)
    return _as(looks, made)


def _compressed(writer: DataWriter, found: Any) -> list[Any]:
    plain = found.detach()
    by_rows = found.layout in (torch.sparse_csr, torch.sparse_bsr)
    indices = (plain.crow_indices(), plain.col_indices()) if by_rows else (plain.ccol_indices(), plain.row_indices())
    items = writer.each(*indices, plain.values())
    return [_looks(found), str(found.layout).removeprefix("torch."), items, list(plain.size())]


def _make_compressed(reader: DataReader, looks: Any, layout: Any, parts: Any, size: Any) -> Any:
    kind = _constant(torch.layout, layout)
    shape = wholes(size, 0)
    made = torch.sparse_compressed_tensor(*_own(reader, parts), shape, layout=kind, check_invariants=True)
    return _as(looks, made)


def _own(reader: DataReader, parts: Any) -> list[Any]:
    """Return the tensors of a sparse one as copies: no other tensor may change its indices after they were checked."""
    return [reader.exact(part, torch.Tensor).detach().clone() for part in parts]


def _make_device(_reader: DataReader, kind: Any, index: Any) -> Any:
    if not _NAME.fullmatch(text(kind)):
        raise NotDataError("a device that is none")
    return torch.device(kind) if index is None else torch.device(kind, whole(index, 0, 1 << 15))


_TENSOR = ObjectKind("torch.tensor", _tensor, _make_tensor)
_SPARSE = ObjectKind("torch.sparse", _sparse, _make_sparse)
_IS_COMPRESSED = ObjectKind("torch.compressed", _compressed, _make_compressed)
_LAYOUTS = {
    torch.strided: _TENSOR,
    torch.sparse_coo: _SPARSE,
    **dict.fromkeys((torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc), _IS_COMPRESSED),
}
_OTHERS = {
    torch.Size: ObjectKind(
        "torch.Size", lambda _writer, found: [list(found)], lambda _reader, row: torch.Size(wholes(row, 0))
    ),
    torch.device: ObjectKind("torch.device", lambda _writer, found: [found.type, found.index], _make_device),
    **{kind: _of_constant(kind) for kind in (torch.dtype, torch.layout, torch.memory_format)},
}
NAMED = {kind.name: kind for kind in (_STORAGE, _TENSOR, _SPARSE, _IS_COMPRESSED, *_OTHERS.values())}


def kind_of(value: Any) -> ObjectKind | None:
    """Return the kind of an object of torch. Raises NotDataError for tensors that have no storage of numbers."""
    cls = type(value)
    if cls not in _CLASSES.values():
        if isinstance(value, torch.nn.Module):
            raise NotDataError(f"the module {cls.__name__}; its data is model.state_dict()")
        return _OTHERS.get(cls)
    if value.is_quantized or value.is_nested or value.is_meta:
        raise NotDataError("a tensor that is quantized, nested or without memory")
    if value.layout not in _LAYOUTS:
        raise NotDataError(f"a tensor in the layout {value.layout}")
    return _LAYOUTS[value.layout]
