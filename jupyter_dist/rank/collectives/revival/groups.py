"""Re-creates all process groups of a rank under the same objects: the ranks agree on the list over their store."""

from __future__ import annotations

import datetime
from typing import Any

import torch.distributed as dist

from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.rank.guard.own import json

from . import compat

INTERRUPTIBLE = True  # ranks wait here for each other, as in the rest of a join


class KeptGroups:
    """The earlier process groups, hidden from torch while the default process group is created again."""

    def __init__(self) -> None:
        self._before = compat.current() if compat.can_keep() else None
        self.num_subgroups = 0
        self.failure: str | None = None  # why the earlier objects have no connections
        self.left: list[str] = []  # names of process groups that differ between ranks
        self.lacking: list[str] = []  # process groups of which members have left the group

    def hide(self) -> bool:
        """Make torch forget the process groups, without closing them; return False if this torch cannot."""
        if self._before is not None:
            compat.clear()
        return self._before is not None

    def put_back(self) -> None:
        """Undo `hide` after joining has failed, so that the next attempt finds the process groups."""
        if self._before is not None:
            compat.restore(self._before)

    def publish(self, store: dist.Store, rank: int, move: compat.Move | None = None) -> None:
        """Publish this rank's process groups to the other ranks, before the default process group is created.

        Args:
            store: where the ranks meet.
            rank: the number of this rank, of now.
            move: how a resize has changed the numbers of ranks since the process groups were created.
        """
        plans: list[compat.GroupPlan] = []
        lacking: list[str] = []
        if (before := self._before) is not None:
            for group in (group for group in before.names if group is not before.default):
                plan = compat.wanted(before, group)
                later = plan if move is None else compat.moved(plan, before, move)
                plans += [] if later is None else [later]
                lacking += [_label(plan)] if later is None else []
        mine = {"count": 0 if before is None else before.num_named, "groups": plans, "lacking": lacking}
        _own(store).set(str(rank), json.dumps(mine))

    def recreate(self, store: dist.Store, world_size: int, connect: datetime.timedelta | None) -> None:
        """Create all process groups that any rank has, and give their connections to the earlier objects.

        A rank that lacks a process group (a new process) gets it too, under its name: the others need all members.
        """
        said = [json.loads(_own(store).get(str(rank))) for rank in range(world_size)]
        wanted, self.left = _agreed([group for one in said for group in one["groups"]])
        self.lacking = sorted({name for one in said for name in one["lacking"]})
        compat.agreed.clear()
        compat.agreed.update({group.name: group for group in wanted})
        fresh = {group.name: compat.create(group, connect) for group in wanted}
        now = compat.current()
        assert now is not None  # the default one has been created
        now = now._replace(num_named=max(now.num_named, *(one["count"] for one in said)))
        try:
            compat.restore(_merged(self._before, now, fresh))
            self.num_subgroups = len(wanted)
        except Exception as err:  # another backend or version: the new process groups are usable, as other objects
            self.failure = f"{type(err).__name__}: {err}"
            self.left = sorted(fresh)
            compat.restore(now)


def _own(store: dist.Store) -> dist.Store:
    return dist.PrefixStore("jupyter_dist_groups", store)


def _label(group: compat.GroupPlan) -> str:
    """Return the name of a process group for users, with its ranks."""
    name = group.name if group.description in ("", "undefined") else group.description
    return f"{name} (ranks {RankSet(group.ranks)})"


def _agreed(said: list[list[Any]]) -> tuple[list[compat.GroupPlan], list[str]]:
    """Return the process groups of all ranks, ordered alike on all, and the names that mean several."""
    found: dict[str, compat.GroupPlan] = {}
    conflicts: dict[str, str] = {}
    for fields in said:
        group = compat.GroupPlan(*fields)
        known = found.setdefault(group.name, group)
        if known[:3] != group[:3]:
            conflicts[group.name] = group.description
    order = sorted(found, key=lambda name: (len(name), name))  # "10" after "9"
    return [found[name] for name in order if name not in conflicts], sorted(conflicts)


def _merged(before: compat.World | None, now: compat.World, fresh: dict[str, Any]) -> compat.World:
    """Return the process groups to register in torch: the earlier objects with new backends, and new ones."""
    if before is None:
        return now
    same: dict[Any, Any] = {now.default: before.default}
    for group, name in before.names.items():
        if group is not before.default and fresh.get(name) is not None:
            same[fresh[name]] = group
    for new, old in same.items():
        compat.move_backends(new, old)
    kept = set(map(id, same.values()))
    maps = {
        name: {same.get(group, group): value for group, value in values.items()} for name, values in now.maps.items()
    }
    for name in ("pg_names", "pg_to_tag"):
        maps[name].update({group: value for group, value in before.maps[name].items() if id(group) in kept})
    tags = {tag: [group for group in groups if id(group) in kept] for tag, groups in before.tags.items()}
    for tag, groups in now.tags.items():
        tags.setdefault(tag, []).extend(group for group in groups if group not in same)
    return now._replace(default=before.default, maps=maps, tags={tag: groups for tag, groups in tags.items() if groups})
