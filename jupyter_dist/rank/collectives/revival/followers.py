"""Follows a resize in samplers of cells, and lists the objects that must be made again."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator
from typing import Any

Place = tuple[int, int]  # a rank, and how many there are


def follow(before: Place, now: Place) -> None:
    """Give all samplers of a place another one; they keep their data, their seed and their epoch."""
    for sampler in _samplers(before):
        _move(sampler, now)


@contextlib.contextmanager
def as_one(place: Place) -> Iterator[None]:
    """Let the samplers of this rank be as the ones of rank 0, so that ranks can compare them."""
    found = [sampler for sampler in _samplers(place) if place[0] != 0]
    for sampler in found:
        sampler.rank = 0
    try:
        yield
    finally:
        for sampler in found:
            sampler.rank = place[0]


def _samplers(place: Place) -> list[Any]:
    kind = getattr(sys.modules.get("torch.utils.data.distributed"), "DistributedSampler", None)
    if kind is None:
        return []
    # Not isinstance(), which would run code of the user's classes.
    found = [value for value in gc.get_objects() if issubclass(type(value), kind)]
    return [one for one in found if (vars(one).get("rank"), vars(one).get("num_replicas")) == place]


def _move(sampler: Any, place: Place) -> None:
    rank, number = place
    epoch = sampler.epoch
    kind = sys.modules["torch.utils.data.distributed"].DistributedSampler
    kind.__init__(sampler, sampler.dataset, number, rank, sampler.shuffle, sampler.seed, sampler.drop_last)
    sampler.epoch = epoch


def made_for(size: int) -> list[str]:
    """Return a sentence for each kind of object of this process that was made for a group of that many ranks."""
    kinds = {name: kind for name, module in _MODULES.items() if (kind := getattr(sys.modules.get(module), name, None))}
    found = {name for value in gc.get_objects() for name, kind in kinds.items() if issubclass(type(value), kind)}
    meshes = kinds.get("DeviceMesh")
    if meshes and not any(issubclass(type(one), meshes) and one.size() == size for one in gc.get_objects()):
        found.discard("DeviceMesh")
    return [_AGAIN[name].format(size) for name in _AGAIN if name in found]


_MODULES = {
    "Accelerator": "accelerate.accelerator",
    "DeviceMesh": "torch.distributed.device_mesh",
    "FullyShardedDataParallel": "torch.distributed.fsdp.fully_sharded_data_parallel",
    "Trainer": "lightning.pytorch.trainer.trainer",
}
_AGAIN = {
    "DeviceMesh": "A DeviceMesh was made for {} ranks: make it again, with the models that are sharded over it.",
    "FullyShardedDataParallel": "An FSDP model is sharded over {} ranks: make it again, and load a checkpoint.",
    "Accelerator": "An Accelerator was made for {} processes: make it again, and prepare models and data again.",
    "Trainer": "A Trainer was made for {} ranks: make it again.",
}
