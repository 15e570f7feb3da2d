"""Divides DTensors and models of FSDP2 among another number of ranks, under the same objects.

Only over a mesh that has all ranks of the group, and for a resize one of one dimension. One tensor at a time is whole:
each rank gets all parts of it, keeps its new part, and drops the rest. All private names here are torch's own.
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.utils.hooks import RemovableHandle

INTERRUPTIBLE = True  # ranks wait here for each other

OVER_SEVERAL = (
    "what is divided over a mesh of several dimensions (HSDP) has other process groups on each rank: make it again, "
    "and load a save"
)

_MESH = ("torch.distributed.device_mesh",)
_FSDP_PARAM = ("torch.distributed.fsdp._fully_shard._fsdp_param", "torch.distributed._composable.fsdp._fsdp_param")
_FSDP_GROUP = (
    "torch.distributed.fsdp._fully_shard._fsdp_param_group",
    "torch.distributed._composable.fsdp._fsdp_param_group",
)
_FSDP_STATE = ("torch.distributed.fsdp._fully_shard._fsdp_state", "torch.distributed._composable.fsdp._fsdp_state")
_FSDP_COMMON = ("torch.distributed.fsdp._fully_shard._fsdp_common", "torch.distributed._composable.fsdp._fsdp_common")


class ShardView:
    """Collects the DTensors that a pickler meets, and hides what each rank has of them.

    Attributes:
        has_others: DTensors over some of the ranks, or over several dimensions, as HSDP makes, unless these are taken.
    """

    def __init__(self, size: int, *, takes_several: bool = False) -> None:
        self.tensors: list[Any] = []
        self.has_others = False
        self._size = size
        self._is_taken = partial(is_over_all if takes_several else is_of_all, size=size)
        self._known: set[int] = set()
        # What FSDP2 has beside the parameters it makes of the modules, some in the order of their addresses.
        kinds = (
            _class(_FSDP_PARAM, "FSDPParam"),
            _class(_FSDP_GROUP, "FSDPParamGroup"),
            _class(_FSDP_STATE, "FSDPState"),
            _class(_FSDP_COMMON, "DataParallelMeshInfo"),
            _class(_MESH, "DeviceMesh"),
            RemovableHandle,
        )
        self._hidden = tuple(kind for kind in kinds if kind is not None)

    def hide(self, value: Any) -> Any:
        """Return the reduced form of a hidden object; None for other objects."""
        if self._is_taken(value):
            self._add(value)
            described = (tuple(value.shape), str(value.dtype), str(value.placements), value.requires_grad)
            return str, (repr(described),)
        if (kind := dtensor()) is not None and issubclass(type(value), kind):
            self.has_others |= value.device_mesh.ndim > 1 or value.device_mesh.size() != self._size
        if any(issubclass(type(value), kind) for kind in self._hidden):
            return str, (type(value).__name__,)
        if (
            type(value) is OrderedDict
            and value
            and all(type(key) is int and callable(one) for key, one in value.items())
        ):
            return list, (list(value.values()),)  # hooks: each process numbers its own
        return None

    def _add(self, tensor: Any) -> None:
        for one in (tensor, tensor.grad if tensor.is_leaf else None):
            if one is not None and id(one) not in self._known and self._is_taken(one):
                self._known.add(id(one))
                self.tensors.append(one)


def _is_hook(item: tuple[Any, Any]) -> bool:
    return type(item[0]) is int and callable(item[1])


class NewPart(NamedTuple):
    """The part of a DTensor that this rank has in the group's new size."""

    tensor: Any
    local: torch.Tensor


def dtensor() -> Any:
    """Return the class of DTensors; None if it has not been imported."""
    return _class(("torch.distributed.tensor",), "DTensor")


def is_of_all(value: Any, size: int) -> bool:
    """Whether an object is a DTensor that is divided among all ranks, or copied to all."""
    return is_over_all(value, size) and value.device_mesh.ndim == 1


def is_over_all(value: Any, size: int) -> bool:
    """Whether an object is a DTensor over a mesh of any dimensions that has all ranks."""
    kind = dtensor()
    if kind is None or not issubclass(type(value), kind):
        return False
    return value.device_mesh.size() == size and not any(one.is_partial() for one in value.placements)


def new_parts(tensors: Iterable[Any], owners: int, place: tuple[int, int] | None) -> list[NewPart]:
    """Return the new parts of these DTensors; all ranks of the process group call this with the same tensors.

    Args:
        tensors: in the same order on all ranks.
        owners: how many ranks have parts; their numbers are the first ones.
        place: the new number of this rank, and the new size; None for a rank that leaves.
    """
    found = []
    for tensor in tensors:
        full = _whole(tensor, owners)
        if place is not None:
            found.append(NewPart(tensor, _part(full, tensor.placements[0], *place)))
    return found


def take(parts: Sequence[NewPart], size: int) -> None:
    """Give DTensors their new parts, and the models of FSDP2 that have them; the process group has its new size."""
    meshes = _equal_meshes([tensor.device_mesh for tensor, _ in parts])
    for mesh in meshes.values():
        if mesh.ndim == 1:  # others are settled when they are read
            _resize_mesh(mesh, size)
    _renew_mesh_infos(meshes)
    for tensor, local in parts:
        spec = tensor._spec
        tensor._local_tensor = local.requires_grad_(tensor._local_tensor.requires_grad and local.is_leaf)
        tensor._spec = type(spec)(spec.mesh, spec.placements, tensor_meta=spec.tensor_meta)
    of_parts = {id(tensor) for tensor, _ in parts}
    kind = _class(_FSDP_PARAM, "FSDPParam")
    for value in gc.get_objects():
        if kind is not None and type(value) is kind and id(value.sharded_param) in of_parts:
            _renew_parameter(value)


def _whole(tensor: Any, owners: int) -> torch.Tensor:
    """Return the whole of a DTensor on every rank."""
    (placement,) = tensor.placements
    local = tensor._local_tensor.detach()
    if placement.is_replicate():
        return local
    whole = torch.empty(tensor.shape, dtype=local.dtype, device=local.device)
    for rank, part in enumerate(_chunks(whole, owners, placement.dim)):
        if part.numel():
            piece = local.contiguous() if rank == dist.get_rank() else torch.empty_like(part).contiguous()
            dist.broadcast(piece, rank)
            part.copy_(piece)
    return whole


def _part(whole: torch.Tensor, placement: Any, rank: int, size: int) -> torch.Tensor:
    if placement.is_replicate():
        return whole
    return _chunks(whole, size, placement.dim)[rank].contiguous().clone()


def _chunks(tensor: torch.Tensor, number: int, dim: int) -> list[torch.Tensor]:
    """Return the parts as DTensor makes them: the last ones may be smaller, or empty."""
    parts = list(torch.chunk(tensor, number, dim=dim))
    shape = list(tensor.shape)
    shape[dim] = 0
    return [*parts, *(tensor.new_empty(shape) for _ in range(number - len(parts)))]


def _equal_meshes(meshes: Sequence[Any]) -> dict[int, Any]:
    """Return these meshes, and all equal ones, by id.

    To torch equal meshes are the same: each `fully_shard()` without a mesh makes one, and specs of tensors, which torch
    caches, have that of another module with tensors of the same shape.
    """
    found = {id(mesh): mesh for mesh in meshes}
    kind = _class(_MESH, "DeviceMesh")
    living = [value for value in gc.get_objects() if kind is not None and issubclass(type(value), kind)]
    return {**found, **{id(one): one for one in living if any(one == mesh for mesh in found.values())}}


def _resize_mesh(mesh: Any, size: int) -> None:
    """Make a mesh of all ranks one of all ranks again, under the same object."""
    new = type(mesh)(mesh.device_type, torch.arange(size), mesh_dim_names=mesh.mesh_dim_names)
    vars(mesh).clear()
    vars(mesh).update(vars(new))


def group_names(mesh: Any) -> Sequence[str]:
    """Return the names of a mesh's process groups, one for each dimension; none in a torch that has other fields."""
    names: Sequence[str] = getattr(mesh, "_dim_group_names", ())
    return names


def settle_mesh(mesh: Any, named: Callable[[str], Any]) -> None:
    """Give a mesh that another rank has written this rank's place in it, and its process groups.

    Args:
        mesh: of several dimensions over all ranks, or of one.
        named: returns the process group here for a name of the other rank.

    Raises:
        LookupError: there is none.
    """
    found = [named(name) for name in group_names(mesh)]
    if len(found) != mesh.ndim or (mesh.ndim > 1 and mesh.size() != dist.get_world_size()):
        raise LookupError(OVER_SEVERAL)
    ranks = mesh.mesh if mesh.ndim > 1 else torch.tensor(dist.get_process_group_ranks(found[0]))
    kept = {name: one for name, one in vars(mesh).items() if name in ("_root_mesh", "_flatten_mapping")}
    new = type(mesh)(mesh.device_type, ranks, mesh_dim_names=mesh.mesh_dim_names, _init_backend=False)
    vars(mesh).clear()
    names = [group.group_name for group in found]
    vars(mesh).update(
        {**vars(new), **kept, "_dim_group_names": names, "_pg_registry": dict(zip(names, found, strict=True))}
    )


def _renew_mesh_infos(meshes: dict[int, Any]) -> None:
    kind = _class(_FSDP_COMMON, "DataParallelMeshInfo")
    for value in gc.get_objects():
        if kind is not None and issubclass(type(value), kind) and id(value.mesh) in meshes:
            value.__post_init__()


def _renew_parameter(parameter: Any) -> None:
    """Let FSDP2 divide a parameter again: it gets the whole shape, and the part that this rank has is put in place."""
    sharded = parameter.sharded_param
    local, requires_grad, grad = sharded._local_tensor.detach(), sharded.requires_grad, sharded.grad
    placement = parameter.fsdp_placement
    whole = torch.zeros(sharded.shape, dtype=local.dtype, device=local.device)
    info = parameter.mesh_info
    chunk = _chunks(whole, info.shard_mesh_size, placement.dim)[info.shard_mesh_rank]
    chunk.copy_(local)
    arguments = {
        "param": torch.nn.Parameter(whole, requires_grad=requires_grad),
        "device": parameter.device,
        "shard_placement_fn": None if placement.dim == 0 else lambda _: placement,
        "mesh_info": parameter.mesh_info,
    }
    names = inspect.signature(parameter._init_sharded_param).parameters
    parameter._init_sharded_param(**{name: value for name, value in arguments.items() if name in names})
    if parameter.post_forward_mesh_info:
        parameter._init_sharded_post_forward_param_metadata(whole)
    parameter._init_extensions()
    parameter.all_gather_outputs, parameter.unsharded_accumulated_grad = [], None
    vars(parameter).pop("_unsharded_param", None)
    fresh = parameter.sharded_param
    sharded._local_tensor, sharded._spec = fresh._local_tensor, fresh._spec
    parameter.sharded_param, sharded.grad = sharded, grad
    parameter._sharding_spec = sharded._spec
    parameter._setattr_on_modules(sharded)


def _class(modules: tuple[str, ...], name: str) -> Any:
    """Return a class that has been imported, if it is in one of these modules."""
    found = (getattr(sys.modules.get(module), name, None) for module in modules)
    return next((kind for kind in found if isinstance(kind, type)), None)
