"""torch.distributed: init_process_group() in a rank that has a process group, and in one whose user destroyed it."""

from __future__ import annotations

import datetime
import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

from .fix import Fix, RankContext, need

INTERRUPTIBLE = True  # cells run and wait below these functions

# Arguments that only a new process group could use.
_FOR_A_NEW_ONE = ("store", "group_name", "pg_options")


def serve_init(context: RankContext, c10d: Any) -> None:
    """Make scripts with init_process_group() and destroy_process_group() work, in cell after cell."""
    need(c10d, "init_process_group", "destroy_process_group")
    owner = _Owner(c10d)
    c10d.init_process_group = _init(context, c10d, owner)
    c10d.destroy_process_group = _destroy(c10d, owner)


class _Owner:
    """The process that created the process groups: forked children inherit them, and must not use them."""

    def __init__(self, c10d: Any) -> None:
        self._c10d = c10d
        self._close = c10d.destroy_process_group
        self._pid = os.getpid()

    def formed(self) -> None:
        """Record this process as the creator of the process groups."""
        self._pid = os.getpid()

    def leave_behind(self) -> bool:
        """Forget the process groups if this process inherited them from its parent; return whether it did."""
        if self._pid == os.getpid() or not self._c10d.is_initialized():
            return False
        from jupyter_dist.rank.collectives import torch_compat

        torch_compat.leave_groups_behind(self._close)
        return True


def _init(context: RankContext, c10d: Any, owner: _Owner) -> Callable[..., None]:
    form = c10d.init_process_group
    signature = inspect.signature(form)

    @functools.wraps(form)
    def init_process_group(*args: Any, **kwargs: Any) -> None:
        from jupyter_dist.rank.collectives import torch_compat

        given = signature.bind(*args, **kwargs).arguments
        owner.leave_behind()
        if c10d.is_initialized():
            _take_over(context, c10d, given)
            return
        if context.meet is None or os.getpid() != context.pid or not _is_of_all_ranks(given):
            form(*args, **kwargs)
            owner.formed()
            return
        torch_compat.forget_failed_init()
        timeout: datetime.timedelta | None = given.get("timeout")
        with context.meet(timeout.total_seconds() if timeout else None) as store:
            place = {"rank": int(os.environ["RANK"]), "world_size": int(os.environ["WORLD_SIZE"])}
            form(**{**given, "init_method": None, "store": store, **place})
        owner.formed()
        if context.keep_timeout is not None:
            context.keep_timeout(timeout)

    return init_process_group


def _destroy(c10d: Any, owner: _Owner) -> Callable[..., None]:
    close = c10d.destroy_process_group

    @functools.wraps(close)
    def destroy_process_group(group: Any = None) -> None:
        from jupyter_dist.rank.collectives import torch_compat

        if owner.leave_behind():
            return
        torch_compat.hold_backends_of_models(group)
        close(group)

    return destroy_process_group


def _take_over(context: RankContext, c10d: Any, given: dict[str, Any]) -> None:
    """Set the timeout of init_process_group(); report arguments that differ from the existing process group.

    Silent if the arguments fit the existing process group.
    """
    differ = _differences(c10d, given)
    timeout = given.get("timeout")
    is_set = timeout is not None and context.keep_timeout is not None and context.keep_timeout(timeout)
    if timeout is not None and not is_set:
        differ.append("another timeout")
    if differ:
        did = "set nothing but the timeout" if is_set else "did nothing"
        sys.stderr.write(f"This rank already has a process group ({', '.join(differ)}): init_process_group() {did}.\n")
    ignored = [name for name in _FOR_A_NEW_ONE if given.get(name) not in (None, "")]
    if ignored:
        hint = "Call destroy_process_group() on all ranks before."
        sys.stderr.write(f"init_process_group() ignored {' and '.join(ignored)}: there is a process group. {hint}\n")


def _differences(c10d: Any, given: dict[str, Any]) -> list[str]:
    there = {"backend": c10d.get_backend(), "world_size": c10d.get_world_size(), "rank": c10d.get_rank()}
    asked = {name: str(given.get(name)).lower() for name in there}
    differ = [name for name in there if asked[name] not in ("none", "-1", str(there[name]))]
    if "backend" in differ and _backends(asked["backend"]) & _backends(there["backend"]):
        differ.remove("backend")  # one of the existing backends, which differ by device
    return [f"{name}={there[name]!r}" for name in differ]


def _backends(text: str) -> set[str]:
    """Return the backends of a text such as "nccl" or "cpu:gloo,cuda:nccl"."""
    return {pair.rpartition(":")[2] for pair in text.split(",")}


def _is_of_all_ranks(given: dict[str, Any]) -> bool:
    """Whether the arguments agree with torchrun's environment variables; torch handles all other arguments."""
    named = {"rank": os.environ.get("RANK"), "world_size": os.environ.get("WORLD_SIZE")}
    return (
        given.get("store") is None
        and given.get("init_method") in (None, "env://")
        and all(value is not None and given.get(name, -1) in (-1, int(value)) for name, value in named.items())
    )


FIXES = {"torch.distributed.distributed_c10d": [Fix("torch", "2.", "", serve_init)]}
