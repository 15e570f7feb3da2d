"""Reads a tensor or an array: its numbers, the parts that it is made of, or why it has neither."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from jupyter_dist.protocol.accelerators import DEVICE_TYPES
from jupyter_dist.rank.collectives.torch_compat import local_tensor

from .opening import attributes_of, is_array, is_kind_of, is_tensor, module_of, mro_of, name_of

MAX_COPIED_BYTES = 64 << 20  # of copies made for reading, for each request
_NUMBERS = "biufc"  # of numpy's kinds


@dataclass(frozen=True)
class Look:
    """A tensor, as a leaf whose numbers can be read, or as parts with names, or why it cannot be compared."""

    leaf: Any = None
    parts: list[tuple[str, Any]] = field(default_factory=list)
    why: str = ""


def is_any_tensor(value: Any) -> bool:
    """Return whether a value is a tensor or an array, of any subclass."""
    numpy = sys.modules.get("numpy")
    arrays = getattr(numpy, "ndarray", None)
    return is_kind_of(value, torch.Tensor) or (arrays is not None and is_kind_of(value, arrays))


def look(value: Any) -> Look:
    """Return the readable form of a tensor or array; no code of its class runs."""
    if is_tensor(value):
        return _of_tensor(value)
    if is_kind_of(value, torch.Tensor):
        return _of_subclass(value)
    return _of_array(value)


def _of_tensor(tensor: Any) -> Look:
    if tensor.is_nested:
        return Look(why="it is a nested tensor")
    shape = [("shape", tuple(shape_of(tensor))), ("dtype", dtype_of(tensor))]
    if tensor.device.type == "meta":
        return Look(parts=shape, why="it is on the meta device, without numbers")
    if tensor.is_quantized:
        return _of_quantized(tensor)
    return Look(tensor) if tensor.layout is torch.strided else _of_sparse(tensor, shape)


def _of_sparse(tensor: Any, shape: list[tuple[str, Any]]) -> Look:
    if tensor.layout is torch.sparse_coo:
        return _of_coordinates(tensor)
    names = _COMPRESSED.get(str(tensor.layout))
    if names is None:
        return Look(parts=shape, why=f"its layout is {tensor.layout}")
    return Look(parts=[*((name, getattr(tensor, name)().detach()) for name in (*names, "values")), *shape])


_COMPRESSED = {
    "torch.sparse_csr": ("crow_indices", "col_indices"),
    "torch.sparse_bsr": ("crow_indices", "col_indices"),
    "torch.sparse_csc": ("ccol_indices", "row_indices"),
    "torch.sparse_bsc": ("ccol_indices", "row_indices"),
}


def _of_coordinates(tensor: Any) -> Look:
    """Return indices and values in coalesced order: a tensor that is not coalesced may have them in any order."""
    tensor = tensor.detach()
    if not tensor.is_coalesced():
        # Without `coalesce`, indices and values of a sparse tensor cannot be asked for, nor can their size.
        if tensor.numel() and tensor.element_size() * _stored(tensor) > MAX_COPIED_BYTES:
            return Look(why="it is sparse, large, and not coalesced")
        tensor = tensor.coalesce()
    return Look(parts=[("indices", tensor.indices()), ("values", tensor.values()), ("shape", tuple(shape_of(tensor)))])


def _stored(tensor: Any) -> int:
    """Return how many elements a sparse tensor stores, each with its indices."""
    dense = 1
    for size in shape_of(tensor)[tensor.sparse_dim() :]:
        dense *= size
    return int(_number_of_stored(tensor)) * (dense + 2 * int(tensor.sparse_dim()))


def _of_quantized(tensor: Any) -> Look:
    if tensor.numel() * tensor.element_size() > MAX_COPIED_BYTES:
        return Look(why="it is quantized and large")
    tensor = tensor.detach()
    parts = [("int_repr", tensor.int_repr())]
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return Look(parts=[*parts, ("scale", tensor.q_scale()), ("zero_point", tensor.q_zero_point())])
    scales = [("scales", tensor.q_per_channel_scales()), ("zero_points", tensor.q_per_channel_zero_points())]
    return Look(parts=[*parts, *scales, ("axis", tensor.q_per_channel_axis())])


def _of_subclass(value: Any) -> Look:
    kind = type(value)
    name, module = name_of(kind), module_of(kind)
    local = local_tensor(value)
    if local is not None:
        found = _of_tensor(local) if is_tensor(local) else Look(why=f"its part is a {name_of(type(local))}")
        return Look(value) if found.leaf is not None else Look(why=found.why or "its part is sparse or quantized")
    if name.startswith("Uninitialized"):
        return Look(why="it has no values yet")
    if name == "FlatParameter":
        return Look(why="FSDP1 has flattened it, and each rank has a part")
    attributes = [(key, one) for key, one in list((attributes_of(value) or {}).items()) if type(key) is str]
    own = mro_of(value)[: next(number for number, base in enumerate(mro_of(value)) if base is torch.Tensor)]
    if not any("__torch_dispatch__" in vars_of(base) for base in own):
        with torch.no_grad():
            plain = _of_tensor(_as_plain(value))
        return Look(plain.leaf, [*plain.parts, *attributes], plain.why)
    if module.startswith("torch.") or _has_data(value) or not any(is_any_tensor(one) for _, one in attributes):
        return Look(why=f"it is a {name}, whose class computes what it is")
    return Look(parts=[("shape", tuple(_shape_of(value))), *attributes])


vars_of = type.__dict__["__dict__"].__get__


def _of_base(name: str) -> Any:
    """Return the attribute of torch's own tensor class, and not of a subclass that overrides it."""
    return next(vars_of(base)[name] for base in torch.Tensor.__mro__ if name in vars_of(base))


_shape_of = _of_base("shape").__get__
_data_ptr = _of_base("data_ptr")
_number_of_stored = _of_base("_nnz")
_as_subclass = _of_base("as_subclass")


def _as_plain(value: Any) -> Any:
    return _as_subclass(value, torch.Tensor)


def _has_data(value: Any) -> bool:
    """Return whether a tensor has a storage: a tensor that only wraps others has none."""
    try:
        return bool(_data_ptr(value))
    except RuntimeError:
        return False


def _of_array(value: Any) -> Look:
    attributes: list[tuple[str, Any]] = []
    if not is_array(value):
        numpy = sys.modules["numpy"]
        found = list((attributes_of(value) or {}).items())
        attributes = [(name, one) for name, one in found if type(name) is str and name != "_mmap"]
        value = numpy.ndarray.view(value, numpy.ndarray)
    if value.dtype.kind in _NUMBERS:
        return Look(value, attributes)
    if value.dtype.hasobject or value.nbytes > MAX_COPIED_BYTES:
        return Look(parts=attributes, why=f"it is an array of {value.dtype}")
    content = (str(value.dtype), tuple(value.shape), value.tobytes())
    return Look(parts=[("content", content), *attributes])


def local_of(leaf: Any) -> Any:
    """Return the tensor of a leaf on this rank: for a DTensor, the local part."""
    local = local_tensor(leaf)
    return leaf if local is None else local


def facts_of(path: str, leaf: Any) -> dict[str, Any]:
    """Return the attributes of a leaf that a comparison needs beside its numbers."""
    local = local_of(leaf)
    facts = {"path": path, "shape": shape_of(leaf), "dtype": dtype_of(leaf), "bytes": bytes_of(local)}
    return facts if local is leaf else {**facts, **placed(leaf)}


def placed(leaf: Any) -> dict[str, Any]:
    """Return the placements of a DTensor, and which part this rank has.

    `shard` is the same on ranks whose parts must be equal: it has the rank's place along the dimensions of the mesh
    that do not replicate.
    """
    mesh, placements = leaf.device_mesh, leaf.placements
    at = mesh.get_coordinate()
    names = f" ({', '.join(mesh.mesh_dim_names)})" if mesh.mesh_dim_names else ""
    size = "x".join(map(str, mesh.shape))
    local = shape_of(local_of(leaf))
    return {
        "placement": f"{', '.join(map(str, placements))} on a mesh of {size}{names}",
        "local": local,
        "shard": None if at is None else [at[i] for i, one in enumerate(placements) if not one.is_replicate()],
        "is_placed": at is None or _expected(shape_of(leaf), placements, list(mesh.shape), at) in (None, local),
    }


def _expected(shape: list[int], placements: Sequence[Any], sizes: list[int], at: Sequence[int]) -> list[int] | None:
    """Return the shape of this rank's part by the placements; None if they are of other kinds than `Shard`."""
    plain = sys.modules["torch.distributed.tensor"].Shard
    for placement, size, place in zip(placements, sizes, at, strict=True):
        if placement.is_replicate() or placement.is_partial():
            continue
        if type(placement) is not plain:
            return None
        whole = shape[placement.dim]
        each = -(-whole // size)
        shape = [*shape]
        shape[placement.dim] = max(0, min(whole - place * each, each))
    return shape


def shape_of(leaf: Any) -> list[int]:
    """Return the shape of a leaf; for a DTensor, the shape of the whole tensor."""
    return [int(size) for size in leaf.shape]


def dtype_of(leaf: Any) -> str:
    """Return the dtype of a leaf without the package: float32."""
    return str(leaf.dtype).removeprefix("torch.")


def bytes_of(leaf: Any) -> int:
    """Return the number of bytes that the elements of a leaf take."""
    return int(leaf.nbytes) if is_array(leaf) else int(leaf.numel() * leaf.element_size())


def count_of(leaf: Any) -> int:
    """Return the number of elements of a leaf."""
    return int(leaf.size) if is_array(leaf) else int(leaf.numel())


def device_of(leaf: Any) -> str:
    """Return the device; without the index if it is the rank's own, which differs on every rank."""
    device = leaf.device
    if not isinstance(device, torch.device):
        return str(device)
    is_own = device.type in DEVICE_TYPES and device.index == getattr(torch, device.type).current_device()
    return device.type if is_own else str(device)
