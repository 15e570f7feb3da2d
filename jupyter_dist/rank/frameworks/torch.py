"""torch.distributed: init_process_group() in a rank that has a process group, and in one whose user destroyed it."""

from __future__ import annotations

import datetime
import functools
import inspect
import os
import sys
from typing import Any

from .fix import Fix, RankContext

INTERRUPTIBLE = True  # cells run and wait below these functions


def serve_init(context: RankContext, c10d: Any) -> None:
    """Make scripts with init_process_group() and destroy_process_group() work, in cell after cell."""
    form = c10d.init_process_group
    signature = inspect.signature(form)

    @functools.wraps(form)
    def init_process_group(*args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs).arguments
        if c10d.is_initialized():
            _say_what_differs(c10d, given)
            return
        if context.meet is None or not _is_of_all_ranks(given):
            form(*args, **kwargs)
            return
        from jupyter_dist.rank.collectives import torch_compat

        torch_compat.forget_failed_init()
        timeout: datetime.timedelta | None = given.get("timeout")
        with context.meet(timeout.total_seconds() if timeout else None) as store:
            place = {"rank": int(os.environ["RANK"]), "world_size": int(os.environ["WORLD_SIZE"])}
            form(**{**given, "init_method": None, "store": store, **place})

    c10d.init_process_group = init_process_group


def _say_what_differs(c10d: Any, given: dict[str, Any]) -> None:
    """Report ignored arguments of init_process_group(); silent if it asks for the existing process group."""
    there = {"backend": c10d.get_backend(), "world_size": c10d.get_world_size(), "rank": c10d.get_rank()}
    asked = {name: str(given.get(name)).lower() for name in there}
    differ = [name for name in there if asked[name] not in ("none", "-1", str(there[name]))]
    if "backend" in differ and there["backend"] in asked["backend"]:
        differ.remove("backend")  # "cpu:gloo,cuda:nccl": ours, by device
    if differ:
        has = ", ".join(f"{name}={there[name]!r}" for name in differ)
        sys.stderr.write(f"This rank already has a process group ({has}): init_process_group() did nothing.\n")


def _is_of_all_ranks(given: dict[str, Any]) -> bool:
    """Whether it asks for what torchrun's environment says; everything else is left to torch."""
    named = {"rank": os.environ.get("RANK"), "world_size": os.environ.get("WORLD_SIZE")}
    return (
        given.get("store") is None
        and given.get("init_method") in (None, "env://")
        and all(value is not None and given.get(name, -1) in (-1, int(value)) for name, value in named.items())
    )


FIXES = {"torch.distributed.distributed_c10d": [Fix("torch", "2.", "", serve_init)]}
