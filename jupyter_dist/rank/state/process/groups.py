"""The process groups of a rank: named in streams by the names that all ranks have for them, and created again."""

from __future__ import annotations

import datetime
import sys
from typing import Any

import torch.distributed as dist

from jupyter_dist.rank.collectives.revival import compat

WORLD = "default"  # the default process group, whose name differs between groups of ranks

OVER_SEVERAL = (
    "what is divided over a mesh of several dimensions (HSDP) has other process groups on each rank: make it again, "
    "and load a save"
)

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
    """Return the process group of this name.

    Raises:
        LookupError: there is none here.
    """
    world = compat.current()
    if world is not None and name == WORLD:
        return world.default
    for group, known in {} if world is None else world.names.items():
        if known == name:
            return group
    message = f"this rank is not in the process group '{name}': {OVER_SEVERAL}"
    raise LookupError(message)


def _fits(plan: Plan) -> bool:
    """Whether all members of a process group exist; a save may be of a larger group of ranks."""
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
