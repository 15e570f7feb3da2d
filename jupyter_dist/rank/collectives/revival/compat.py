"""The internals of torch with which process groups are re-created under the same objects.

A process group is a frame around backends, one for each device type. torch makes new process groups, and the old frames
take their backends: every model, mesh, optimizer and variable that holds a frame, or knows its name, continues. Seen
with torch 2.13; PARTS in torch_compat.py lists the parts that a version may lack. Then only the default process group
is re-created, as another object.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as bindings
from torch.distributed import distributed_c10d as c10d

from jupyter_dist.rank.collectives import torch_compat

from . import frames

# Of `torch.distributed.distributed_c10d._world`, by process group. Not all of them are in every version.
_MAPS = ("pg_map", "pg_names", "pg_group_ranks", "pg_backend_config", "pg_to_tag", "pg_coalesce_state")
_TAGS = "tags_to_pg"
_RELEASE = "_ZN4c10d12ProcessGroup17release_resourcesEv"
# Numbers of backend types are bytes; torch uses the first few, which name the kinds of backends.
_FIRST_FREE_TYPE = 32
_NUM_TYPES = 256
CLOSE_SECONDS = 2.0  # the side thread of this rank works meanwhile, and the others wait for it

Tags = dict[str, list[Any]]


class World(NamedTuple):
    """All process groups of this process, as torch registers them."""

    default: Any
    maps: dict[str, dict[Any, Any]]
    tags: Tags
    num_named: int  # the number in the name of the next one

    @property
    def names(self) -> dict[Any, str]:
        """Return the name of each process group, which is the same on its ranks."""
        return self.maps["pg_names"]


class GroupPlan(NamedTuple):
    """The arguments with which all members create a process group."""

    name: str
    ranks: list[int]  # in the order of their numbers in the group
    backend: str
    description: str
    timeout_seconds: float
    is_high_priority: bool


# The process groups that all ranks have created again, by name, in their order: also those without this rank.
agreed: dict[str, GroupPlan] = {}


def can_keep() -> bool:
    """Whether this torch has all these internals."""
    return (
        all(hasattr(c10d, name) for name in ("_world", "_update_default_pg", "_process_group_name"))
        and all(hasattr(bindings, name) for name in ("_register_process_group", "_unregister_all_process_groups"))
        and hasattr(dist.ProcessGroup, "_register_backend")
    )


def current() -> World | None:
    """Return the present process groups; None if there are none."""
    if not dist.is_initialized():
        return None
    maps = {name: dict(getattr(c10d._world, name, {})) for name in _MAPS}
    tags = {tag: list(groups) for tag, groups in getattr(c10d._world, _TAGS, {}).items()}
    return World(dist.group.WORLD, maps, tags, c10d._world.group_count)


def clear() -> None:
    """Make torch forget all process groups, without closing them."""
    for name in (*_MAPS, _TAGS):
        getattr(c10d._world, name, {}).clear()
    bindings._unregister_all_process_groups()
    c10d._update_default_pg(None)
    c10d._world.group_count = 0


def restore(world: World) -> None:
    """Register these process groups in torch, and no others."""
    clear()
    for name, values in world.maps.items():
        getattr(c10d._world, name, {}).update(values)
    getattr(c10d._world, _TAGS, {}).update(world.tags)
    for group, name in world.names.items():
        bindings._register_process_group(name, group)
    c10d._update_default_pg(world.default)
    c10d._world.group_count = world.num_named


def wanted(world: World, group: Any) -> GroupPlan:
    """Return the plan to create this process group again."""
    ranks: dict[int, int] = world.maps["pg_group_ranks"][group]
    backends = [group._get_backend(device) for device in group._device_types]
    options = [getattr(backend, "options", None) for backend in backends]
    timeouts = [limit for option in options if isinstance(limit := getattr(option, "_timeout", None), timedelta)]
    backend = str(world.maps["pg_map"][group][0])
    timeout = max(timeouts, default=None) or torch_compat.default_timeout(backend)
    return GroupPlan(
        name=world.names[group],
        ranks=sorted(ranks, key=ranks.__getitem__),
        backend=backend,
        description=str(getattr(group, "group_desc", "") or ""),
        timeout_seconds=timeout.total_seconds(),
        is_high_priority=any(getattr(option, "is_high_priority_stream", False) for option in options),
    )


class Move(NamedTuple):
    """The change of the ranks' numbers by a resize of the group."""

    places: dict[int, int]  # the new number of each rank that stays, by its earlier one
    world_size: int


def moved(group: GroupPlan, before: World, move: Move) -> GroupPlan | None:
    """Return the plan of a process group after a resize: a group of all ranks is one of all ranks again.

    Returns:
        None if a member is not there any more.
    """
    if len(group.ranks) == len(before.maps["pg_group_ranks"][before.default]):
        ranks = list(range(move.world_size))
    elif move.places.keys() >= set(group.ranks):
        ranks = [move.places[rank] for rank in group.ranks]
    else:
        return None
    return group._replace(ranks=ranks)


def create(group: GroupPlan, connect: timedelta | None) -> Any:
    """Create a process group of this name; all ranks call this, in the same order. None on a rank that is no member.

    Args:
        group: the plan of the process group.
        connect: how long ranks wait for each other meanwhile; as long as for its collectives, by default.
    """
    timeout = timedelta(seconds=group.timeout_seconds)
    arguments: dict[str, Any] = {"backend": group.backend, "timeout": timeout if connect is None else connect}
    if group.description not in ("", "undefined"):
        arguments["group_desc"] = group.description
    if group.ranks != sorted(group.ranks):  # only with a torch that has this argument
        arguments["sort_ranks"] = False
    if group.is_high_priority:
        arguments["pg_options"] = _high_priority()
    with _next_name(group.name):
        created = dist.new_group(group.ranks, **arguments)
    if not isinstance(created, dist.ProcessGroup):
        return None
    if connect is not None:
        torch_compat.set_group_timeout(timeout, created)
    return created


def move_backends(fresh: Any, group: Any) -> None:
    """Give the backends of one process group to another one, which keeps its name, its ranks and its identity.

    The earlier backends are closed: gloo's would keep three threads and their sockets, NCCL's a thread, and the process
    group holds them until it is destroyed. They are of the plans that all ranks have created again, and the new ones
    are connected already.

    Raises:
        RuntimeError: this process group has been re-created more often than torch can number.
    """
    _split_by_fresh_groups()
    # Their last references: what closes them runs where these are dropped, and not in the call that empties the group.
    earlier = [_fresh_groups.pop(group, None), *(group._get_backend(device) for device in group._device_types)]
    backends = {device: fresh._get_backend(device) for device in fresh._device_types}
    frames.set_place(group, fresh.rank(), fresh.size())  # from torch 2.15 on, it needs the backends of before
    kinds = _kinds(group, fresh, list(backends.values()))
    for device, backend in backends.items():
        group._register_backend(device, kinds[id(backend)], backend)
    _fresh_groups[group] = fresh
    _close(earlier)


def _close(backends: list[Any]) -> None:
    """Drop these backends, in a thread: closing waits for their threads, which a driver may hold."""
    closing = threading.Thread(target=backends.clear, name="close old connections", daemon=True)
    closing.start()
    closing.join(CLOSE_SECONDS)


# The process group that torch created, by the earlier object that has its backends: it has a store, too. torch divides
# a process group over its store, and the earlier object has a broken store, or none: that would end the process.
_fresh_groups: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


@functools.cache
def _split_by_fresh_groups() -> None:
    """Redirect methods of process groups that need a store to the process group that torch created."""
    for name in ("split_group", "merge_remote_group", "get_group_store"):
        method = getattr(dist.ProcessGroup, name, None)
        if method is not None:
            setattr(dist.ProcessGroup, name, _of_fresh_group(method))


def _of_fresh_group(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(group: Any, *args: Any, **kwargs: Any) -> Any:
        return method(_fresh_groups.get(group, group), *args, **kwargs)

    return call


def _kinds(group: Any, fresh: Any, backends: list[Any]) -> dict[int, Any]:
    """Return the type to register each backend as, by its id: torch keeps the first backend that it has of a type."""
    types = bindings.ProcessGroup.BackendType
    if _release_backends(group):
        _used_types.pop(group, None)
        if all(_is_gloo(backend) for backend in backends):
            return {id(backend): types.GLOO for backend in backends}
        if torch_compat.asks_backends_for_place():
            known = dist.Backend.backend_type_map
            named = torch_compat.backends_of(fresh).items()
            return {id(backend): known.get(name, types.CUSTOM) for name, backend in named}
    # Where torch cannot release them, the broken ones stay, with their threads, until the process group is destroyed.
    kinds: dict[int, Any] = {}
    for backend in backends:
        if id(backend) not in kinds:
            number = _FIRST_FREE_TYPE + _used_types.get(group, 0)
            if number >= _NUM_TYPES:
                raise RuntimeError("This process group cannot be re-created again. Restart the group.")
            _used_types[group] = _used_types.get(group, 0) + 1
            kinds[id(backend)] = types(number)
    return kinds


# How many numbers each process group has used.
_used_types: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def _release_backends(group: Any) -> bool:
    """Make a process group forget its backends, as torch does at its end; return False if this torch cannot."""
    release = _releasing()
    if release is None or type(group) is not dist.ProcessGroup:
        return False
    release(ctypes.c_void_p(group._id()))  # the GIL is released meanwhile
    return True


@functools.cache
def _releasing() -> Callable[[ctypes.c_void_p], None] | None:
    """Return c10d::ProcessGroup::release_resources(), a method without arguments that torch calls by itself.

    Its Python interface has no name for it. `ProcessGroup._id()` is the address of the object.
    """
    if not hasattr(dist.ProcessGroup, "_id"):
        return None
    try:
        library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
        release = getattr(library, _RELEASE)
    except (OSError, AttributeError):
        return None
    release.argtypes, release.restype = [ctypes.c_void_p], None
    found: Callable[[ctypes.c_void_p], None] = release
    return found


def _is_gloo(backend: Any) -> bool:
    gloo = torch_compat.gloo_class()
    return gloo is not None and isinstance(backend, gloo)


def _high_priority() -> Any:
    """Return options of the default process group's backend, with a stream of high priority."""
    world = dist.group.WORLD
    for device in world._device_types:
        options: Any = getattr(world._get_backend(device), "options", None)
        if hasattr(options, "is_high_priority_stream"):
            make: Any = type(options)
            return make(is_high_priority_stream=True)
    return None


@contextlib.contextmanager
def _next_name(name: str) -> Iterator[None]:
    def given(*_args: Any, **_kwargs: Any) -> str:
        return name

    make, c10d._process_group_name = c10d._process_group_name, given
    try:
        yield
    finally:
        c10d._process_group_name = make
