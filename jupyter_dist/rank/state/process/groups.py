"""The process groups of a rank: named in streams by the names that all ranks have for them, and created again."""

from __future__ import annotations

import contextlib
import datetime
import sys
from collections.abc import Iterator
from typing import Any

import torch.distributed as dist

from jupyter_dist.rank.collectives.revival import compat, shards

WORLD = "default"  # the default process group, whose name differs between groups of ranks

Plan = list[Any]  # fields of compat.GroupPlan, as a manifest has them


def is_process_group(value: Any) -> bool:
    """Whether a value is a process group of torch."""
    return issubclass(type(value), dist.ProcessGroup)


def is_mesh(kind: type) -> bool:
    """Whether a class is DeviceMesh, or below it."""
    module = sys.modules.get("torch.distributed.device_mesh")
    return module is not None and issubclass(kind, module.DeviceMesh)


def name_of(group: Any) -> str:
    """Return the name of a process group that torch knows.

    Raises:
        TypeError: it was destroyed, or was never registered.
    """
    world = compat.current()
    if world is None or group not in world.names:
        raise TypeError("it holds a process group that was destroyed")
    return WORLD if group is world.default else str(world.names[group])


def plans() -> list[Plan]:
    """Return the plans of all process groups but the default one."""
    world = compat.current()
    if world is None:
        return []
    return [list(compat.wanted(world, group)) for group in world.names if group is not world.default]


def named(name: str) -> Any:
    """Return the process group of this name; for a name in a mesh of another rank, its counterpart here.

    Raises:
        LookupError: there is none here.
    """
    world = compat.current()
    if world is not None and name == WORLD:
        return world.default
    here = {} if world is None else {str(known): group for group, known in world.names.items()}
    wanted = name if name in here else _in_place_of(name)
    if wanted in here:
        return here[wanted]
    message = f"this rank is not in the process group '{name}': {shards.OVER_SEVERAL}"
    raise LookupError(message)


_writers: list[int] = []  # the rank whose copies are read now


@contextlib.contextmanager
def written_by(rank: int) -> Iterator[None]:
    """Read the copies that another rank has written, whose meshes have other process groups."""
    _writers[:] = [rank]
    try:
        yield
    finally:
        _writers.clear()


def settle(mesh: Any) -> None:
    """Give a mesh that another rank has written this rank's place in it; one of all ranks in a row is renewed later.

    Raises:
        LookupError: this rank has no process group in the place of one of that rank.
    """
    plans = (compat.agreed.get(name) for name in shards.group_names(mesh))
    is_of_some = any(plan is not None and len(plan.ranks) < dist.get_world_size() for plan in plans)
    if _writers and (mesh.ndim > 1 or is_of_some):
        shards.settle_mesh(mesh, named)


def _in_place_of(name: str) -> str:
    """Return the name of this rank's process group in the place of one of the writer: along the same dimension.

    All ranks make their meshes in the same order: it is the first one of this description here, if that is the
    first one there, and so on.
    """
    plan = compat.agreed.get(name)
    if not _writers or plan is None or not plan.description.startswith("mesh_"):
        return ""
    alike = [one for one in compat.agreed.values() if _kind_of(one) == _kind_of(plan)]
    here, there = ([one.name for one in alike if rank in one.ranks] for rank in (dist.get_rank(), _writers[0]))
    return here[there.index(name)] if len(here) == len(there) and name in there else ""


def _kind_of(plan: compat.GroupPlan) -> tuple[str, int]:
    return plan.description, len(plan.ranks)


def _fits(plan: Plan) -> bool:
    """Whether all members of a process group exist; it may be of a larger group of ranks."""
    return max(plan[1], default=0) < dist.get_world_size()


def create_missing(wanted: list[Plan], connect: datetime.timedelta) -> list[str]:
    """Create the process groups that are not here; all ranks call this with equal plans, in the same order.

    Args:
        wanted: the plans of all ranks.
        connect: how long ranks wait for each other.

    Returns:
        The names of created process groups.
    """
    world = compat.current()
    if world is None:
        return []
    known = {str(name) for name in world.names.values()}
    missing = {plan[0]: compat.GroupPlan(*plan) for plan in wanted if plan[0] not in known and _fits(plan)}
    order = sorted(missing, key=lambda name: (len(name), name))
    for name in order:
        compat.create(missing[name], connect)
    return order
