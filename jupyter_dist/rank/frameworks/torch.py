"""torch.distributed: init_process_group() in a rank that has its process group, and in one whose user destroyed it."""

from __future__ import annotations

import datetime
import functools
import inspect
import os
import sys
from typing import Any

from .fix import Fix, Room


def serve_init(room: Room, c10d: Any) -> None:
    """Scripts begin with init_process_group(), and may end with destroy_process_group(): both work, cell after cell."""
    form = c10d.init_process_group
    signature = inspect.signature(form)

    @functools.wraps(form)
    def init_process_group(*args: Any, **kwargs: Any) -> None:
        if c10d.is_initialized():
            sys.stderr.write("This rank is in its process group already: init_process_group() did nothing.\n")
            return
        given = signature.bind(*args, **kwargs).arguments
        if room.meet is None or not _is_of_all_ranks(given):
            form(*args, **kwargs)
            return
        # After a failed one ranks would disagree on the next group's name, and hang.
        c10d._world.group_count = 0
        timeout: datetime.timedelta | None = given.get("timeout")
        with room.meet(timeout.total_seconds() if timeout else None) as store:
            place = {"rank": int(os.environ["RANK"]), "world_size": int(os.environ["WORLD_SIZE"])}
            form(**{**given, "init_method": None, "store": store, **place})

    c10d.init_process_group = init_process_group


def _is_of_all_ranks(given: dict[str, Any]) -> bool:
    """Whether it means what torchrun's environment says; everything else is torch's to do, or to refuse."""
    named = {"rank": os.environ.get("RANK"), "world_size": os.environ.get("WORLD_SIZE")}
    return (
        given.get("store") is None
        and given.get("init_method") in (None, "env://")
        and all(value is not None and given.get(name, -1) in (-1, int(value)) for name, value in named.items())
    )


FIXES = {"torch.distributed.distributed_c10d": [Fix("torch", "2.", "", serve_init)]}
