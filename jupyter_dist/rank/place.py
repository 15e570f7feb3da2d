"""The place of a rank in its group: its number, the size of the group, and the variables that torchrun has for both.

A change of the number of ranks gives a living process another place.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import replace
from typing import Any, TypedDict

from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.rank.collectives.revival.compat import Move


class NewPlace(TypedDict):
    """The place that the agent gives to a rank."""

    rank: int
    local_rank: int
    world_size: int
    local_world_size: int
    node: int | None
    shape: int
    env: dict[str, str]  # the variables of its environment that change
    places: dict[str, int]  # the new number of each rank that stays, by the number in the shape before


def moved(spec: RankSpec, new: NewPlace) -> RankSpec:
    """Return the spec of a rank in its new place."""
    return replace(
        spec,
        rank=new["rank"],
        local_rank=new["local_rank"],
        world_size=new["world_size"],
        local_world_size=new["local_world_size"],
        node=new["node"],
        shape=new["shape"],
        env={**spec.env, **new["env"]},
    )


def move_of(spec: RankSpec, new: NewPlace) -> Move | None:
    """Return how the numbers of ranks change for a rank in this place; None if it is in the new place already."""
    if spec.shape == new["shape"]:
        return None
    return Move({int(before): after for before, after in new["places"].items()}, new["world_size"])


def names_of(spec: RankSpec) -> dict[str, Any]:
    """Return the names in the namespace of every rank that depend on its place."""
    return {
        "rank": spec.rank,
        "local_rank": spec.local_rank,
        "world_size": spec.world_size,
        # The other names that nbdistributed uses.
        "__rank__": spec.rank,
        "__world_size__": spec.world_size,
    }


def rename(namespace: MutableMapping[str, Any], before: RankSpec, now: RankSpec) -> None:
    """Give the names that depend on the place their new values, except where a cell has set another value."""
    earlier = names_of(before)
    for name, value in names_of(now).items():
        if type(found := namespace.get(name)) is int and found == earlier[name]:
            namespace[name] = value
