"""The ranks of a group at one size: which stay, which number each has, and what its process has to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.processes.starting.environment import check_open_files, rank_spec
from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.protocol.wire.specs import GroupSpec, RankSpec
from jupyter_dist.transport.frames import Header


@dataclass(frozen=True)
class WantedSize:
    """The size that a group is to have, and the devices of its new ranks."""

    num_ranks: int
    devices: tuple[int, ...] = ()
    device_names: tuple[str, ...] = ()
    others: str = "refuse"  # what to do about names that are not alike on all ranks: refuse, keep or copy


class Shape(NamedTuple):
    """The ranks of a group at one size, each with its place."""

    spec: GroupSpec
    ranks: list[tuple[RankProcess, RankSpec]]


def check(spec: GroupSpec, wanted: WantedSize) -> None:
    """Raise JupyterDistError `bad_request` or `bad_environment` if the group cannot have that size."""
    if wanted.num_ranks == spec.world_size:
        message = f"Group '{spec.name}' has {spec.world_size} ranks already."
        raise bad_request(message, "To start dead ranks again, replace them.")
    if spec.is_on_nodes:
        raise bad_request("A group on several machines cannot be resized yet.", "Start another one.")
    check_open_files(wanted.num_ranks)


def resized(spec: GroupSpec, staying: Sequence[RankProcess], wanted: WantedSize) -> GroupSpec:
    """Return the spec of the group in its new size."""
    if not ACCELERATORS[spec.accelerator].has_devices:
        return replace(spec, world_size=wanted.num_ranks)
    numbers = [rank.rank for rank in staying]
    names = [spec.device_names[number] for number in numbers] if spec.device_names else []
    return replace(
        spec,
        world_size=wanted.num_ranks,
        devices=[*(spec.devices[number] for number in numbers), *wanted.devices],
        device_names=[*names, *wanted.device_names],
    )


def place(spec: GroupSpec, number: int, before: RankSpec, shape: int) -> RankSpec:
    """Return the new place of a rank that stays.

    On devices it keeps its LOCAL_RANK: that is the number of its device in the list that its process has.
    """
    new = rank_spec(spec, number, before.store_path, before.generation, master(before))
    row = ACCELERATORS[spec.accelerator]
    if row.has_devices:
        kept = {name: before.env[name] for name in ("LOCAL_RANK", str(row.visible_devices)) if name in before.env}
        new = replace(
            new,
            env={**new.env, **kept},
            local_rank=before.local_rank,
            device=before.device,
            device_index=before.device_index,
        )
    return replace(new, shape=shape, replaces=before.replaces)


def move(places: dict[int, int]) -> Header:
    """Return the new number of each rank that stays, by the earlier one, as all of them get it."""
    return {"places": {str(before): after for before, after in places.items()}}


def master(spec: RankSpec) -> tuple[str, int] | None:
    """Return the address of `env://`, which ranks keep."""
    address, port = spec.env.get("MASTER_ADDR"), spec.env.get("MASTER_PORT")
    return None if address is None or port is None else (address, int(port))
