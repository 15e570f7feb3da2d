"""torch's process group: formed at the start, formed anew after it broke, with the user's models revived."""

from __future__ import annotations

import contextlib
import datetime
import functools
import os
import sys
from typing import Any

import torch
import torch.distributed as dist

from jupyter_dist.protocol.specs import RankSpec

from . import unhang

REJOIN_SECONDS = 10.0
REJOIN_SECONDS_PER_RANK = 0.5


class ProcessGroup:
    """One rank's membership."""

    def __init__(self, spec: RankSpec) -> None:
        self._spec = spec
        self._store_path = spec.store_path
        self._broken = False

    def join(self, store_path: str, timeout_seconds: float | None = None) -> None:
        """Meet the other ranks; blocks until all are there. Raises what torch raises.

        Args:
            store_path: a FileStore that no process group has used.
            timeout_seconds: how long to wait for the others; the spec's by default.
        """
        folder = os.path.dirname(store_path)
        if not os.path.isdir(folder):  # torch would try to open the file until the timeout
            raise FileNotFoundError(f"the folder of the store is gone: {folder}")
        self._store_path = store_path
        if self._spec.accelerator == "cuda":
            torch.cuda.set_device(self._spec.local_rank)
        dist.set_debug_level_from_env()
        store = dist.FileStore(store_path, self._spec.world_size)
        dist.init_process_group(
            self._spec.backend,
            store=store,
            rank=self._spec.rank,
            world_size=self._spec.world_size,
            timeout=datetime.timedelta(seconds=timeout_seconds or self._spec.join_timeout_seconds),
        )
        # That was the time to meet; a collective of a cell may wait as long as torch's default.
        default = dist.distributed_c10d._get_default_timeout(dist.Backend(self._spec.backend))
        store.set_timeout(default)
        dist.distributed_c10d._set_pg_timeout(default, dist.group.WORLD)
        self._broken = False

    def rejoin(self, store_path: str, namespace: dict[str, Any]) -> int:
        """Leave the broken group, form a new one, revive DDP models; return how many were revived."""
        if dist.is_initialized():
            if self._spec.backend == "gloo":
                # A collective that was interrupted may still wait in gloo's own thread, and closing waits for it.
                unhang.break_collectives()
            # On a group whose connections are gone, closing it may fail; it is forgotten all the same.
            with contextlib.suppress(RuntimeError):
                dist.destroy_process_group()
        self.begin_cell()
        # All are warm and meet at once. One that dies after it told its address is waited for by gloo, where
        # nothing can be broken yet: this is how long its death can hold up the others.
        self.join(store_path, max(REJOIN_SECONDS, self._spec.world_size * REJOIN_SECONDS_PER_RANK))
        return _revive_models(namespace)

    def begin_cell(self) -> None:
        """Undo a trap of torch: after a failed init, ranks disagree on the next group's name and hang."""
        if not dist.is_initialized():
            dist.distributed_c10d._world.group_count = 0

    def state(self, error: BaseException | None) -> str:
        """`ok`, `broken` (collectives would fail), or `none` (the user destroyed it)."""
        if error is not None and unhang.is_of_a_broken_group(error):
            self._broken = True
        if not dist.is_initialized():
            return "none"
        return "broken" if self._broken else "ok"

    def peer_lost(self) -> None:
        """A member is gone (side thread): until the group is formed anew collectives fail, and none waits for ever."""
        self._broken = True
        if self._spec.backend == "gloo":
            unhang.break_collectives()

    def collective_seq(self) -> int | None:
        """How many collectives this rank began on the default process group; None where there is none."""
        if not dist.is_initialized():
            return None
        return int(dist.group.WORLD._get_sequence_number_for_group())

    def unhang(self) -> bool:
        """Free the main thread if it waits in a gloo collective (side thread); True when the group is now broken."""
        if self._spec.backend != "gloo" or not unhang.main_thread_sleeps():
            return False
        # Said before it is done: the main thread may be free and have replied before this thread goes on.
        self._broken, was_broken = True, self._broken
        if was_broken:  # the connections are cut already, so it waits in the store (new_group does)
            unhang.break_store(self._store_path)
        if not unhang.break_collectives() and not was_broken:
            self._broken = False
        return self._broken


def tolerate_second_init() -> None:
    """Let scripts that begin with init_process_group() run in a rank, which has its process group already."""
    form = dist.init_process_group

    @functools.wraps(form)
    def init_process_group(*args: Any, **kwargs: Any) -> None:
        if dist.is_initialized():
            sys.stderr.write("This rank is in its process group already: init_process_group() did nothing.\n")
        else:
            form(*args, **kwargs)

    dist.init_process_group = dist.distributed_c10d.init_process_group = init_process_group


def _revive_models(namespace: dict[str, Any]) -> int:
    from torch.nn.parallel import DistributedDataParallel

    models = {id(value): value for value in namespace.values() if isinstance(value, DistributedDataParallel)}
    for model in models.values():
        model._update_process_group(dist.group.WORLD)
    return len(models)


def reseed(accelerator: str) -> None:
    """Forked ranks share the zygote's random state, which no two ranks may."""
    if accelerator == "cuda":
        torch.seed()
    else:
        torch.default_generator.seed()  # torch.seed() would prepare seeds for every kind of device, at some cost
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def use_threads() -> None:
    """OMP_NUM_THREADS was read long ago, when the zygote imported torch."""
    number = os.environ.get("OMP_NUM_THREADS", "")
    if number.isdigit() and int(number) > 0:
        torch.set_num_threads(int(number))
