"""The ranks of a group at one size: which stay, which number each has, and what its process has to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.processes.starting.environment import check_open_files, rank_spec
from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.protocol.models.sentences import join, say, say_n
from jupyter_dist.protocol.ranks import divided
from jupyter_dist.protocol.wire.specs import GroupSpec, RankSpec
from jupyter_dist.transport.frames import Header

if TYPE_CHECKING:
    from jupyter_dist.agent.nodes.head import Nodes
    from jupyter_dist.agent.nodes.remote import RemoteNode


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
    nodes: list[RemoteNode]  # in order; empty for a group on one machine


class Members(NamedTuple):
    """The ranks that stay and leave, in order, and the nodes of the new size with their numbers of ranks."""

    staying: list[RankProcess]
    leaving: list[RankProcess]
    nodes: list[RemoteNode]
    counts: list[int]  # empty for a group on one machine


def check(spec: GroupSpec, wanted: WantedSize) -> None:
    """Raise JupyterDistError `bad_request` or `bad_environment` if the group cannot have that size."""
    if wanted.num_ranks == spec.world_size:
        message = say("Group '%1' has %2 ranks already.", spec.name, spec.world_size)
        raise bad_request(message, say("To start dead ranks again, replace them."))
    if not spec.is_on_nodes:
        check_open_files(wanted.num_ranks)


def members(ranks: Sequence[RankProcess], nodes: Nodes | None, num_ranks: int) -> Members:
    """Return who stays and who leaves: the living ranks in order.

    On several machines, nodes with a dead rank are left out, and the others are filled in order, each up to the number
    of ranks that it began with: only the last one may have fewer.

    Raises:
        JupyterDistError: `bad_request`, if the nodes cannot have that many ranks.
    """
    living = [rank for rank in ranks if rank.state != "dead"]
    if nodes is None:
        return Members(living[:num_ranks], living[num_ranks:], [], [])
    whole = [node for node in nodes.active if node.state == "joined" and _is_whole(node, ranks)]
    there = [*whole, *nodes.free()]
    rooms = [node.room for node in there]
    if sum(rooms) < num_ranks:
        machines = say_n("%1 node is", "%1 nodes are", len(there))
        message = say(
            "%1 ranks were requested; %2 there, with all of their ranks, and room for %3.",
            num_ranks,
            machines,
            sum(rooms),
        )
        raise bad_request(message, join(say("Replace dead ranks first, or choose fewer."), nodes.how_to_join()))
    counts = divided(num_ranks, rooms)
    numbers = {rank for node, count in zip(there, counts, strict=False) for rank in node.ranks[:count]}
    staying = [rank for rank in living if rank.rank in numbers]
    leaving = [rank for rank in living if rank.rank not in numbers]
    return Members(staying, leaving, there[: len(counts)], counts)


def _is_whole(node: RemoteNode, ranks: Sequence[RankProcess]) -> bool:
    return all(ranks[number].state != "dead" for number in node.ranks)


def resized(spec: GroupSpec, found: Members, wanted: WantedSize) -> GroupSpec:
    """Return the spec of the group in its new size."""
    if spec.is_on_nodes:
        return replace(spec, world_size=wanted.num_ranks, ranks_per_node=found.counts)
    if not ACCELERATORS[spec.accelerator].has_devices:
        return replace(spec, world_size=wanted.num_ranks)
    numbers = [rank.rank for rank in found.staying]
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
