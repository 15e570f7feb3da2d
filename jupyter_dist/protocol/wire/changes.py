"""What changed in the status of a group: most fields of 1024 ranks are as before. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

from jupyter_dist.protocol.ranks import RankSet

if TYPE_CHECKING:
    from jupyter_dist.protocol.models.models import RankModel

    from .messages import RankChanges

    Ranks = Sequence[RankModel]


def are_same_ranks(old: Ranks, new: Ranks) -> bool:
    """Whether both have the same numbers, in the same order."""
    return [rank["rank"] for rank in old] == [rank["rank"] for rank in new]


def changed_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a status with another value than before, without `ranks`."""
    return {name: value for name, value in new.items() if name != "ranks" and (name not in old or old[name] != value)}


def rank_changes(old: Ranks, new: Ranks, by_field: bool = True) -> tuple[list[RankModel], RankChanges | None]:
    """Return the ranks of `new`, which has the same numbers as `old`, that changed: whole, and others field by field.

    A field keeps the type of its values.
    """
    changed = [(was, rank) for was, rank in zip(old, new, strict=True) if was != rank]
    if not by_field or len(changed) < 2:
        return [rank for _, rank in changed], None
    num_fields = min(len(rank) for _, rank in changed)
    alike = [pair for pair in changed if len(pair[0]) == len(pair[1]) == num_fields]
    try:
        fields = _by_field([was for was, _ in alike], [rank for _, rank in alike])
    except (KeyError, IndexError):  # they have as many fields, but others, or none is alike
        return [rank for _, rank in changed], None
    return [rank for was, rank in changed if not len(was) == len(rank) == num_fields], fields


def _by_field(before: Ranks, now: Ranks) -> RankChanges:
    names = list(now[0])
    rows = itemgetter(*names)
    alike, columns = {}, {}
    for name, was, values in zip(
        names, zip(*map(rows, before), strict=True), zip(*map(rows, now), strict=True), strict=True
    ):
        if was != values:
            if values.count(values[0]) == len(values):
                alike[name] = values[0]
            else:
                columns[name] = list(values)
    return {"ranks": str(RankSet(rank["rank"] for rank in now)), "alike": alike, "columns": columns}


def with_changes(old: Ranks, whole: Ranks, changes: RankChanges | None) -> list[RankModel]:
    """Return the ranks after the changes; a rank that did not change is the same object."""
    news = {rank["rank"]: rank for rank in whole}
    if changes is not None:
        alike, columns = changes["alike"], changes["columns"]
        numbers = RankSet.from_text(changes["ranks"])
        rows = zip(*columns.values(), strict=True) if columns else [()] * len(numbers)
        by_rank = {rank["rank"]: rank for rank in old}
        for number, row in zip(numbers, rows, strict=True):
            rank = {**by_rank[number], **alike, **dict(zip(columns, row, strict=True))}
            news[number] = cast("RankModel", rank)
    return [news.get(rank["rank"], rank) for rank in old]


class StatusSender:
    """Makes messages with the status of a group for one receiver: each has what changed since the one before."""

    def __init__(self) -> None:
        self._sent: Mapping[str, Any] = {}
        self._number = 0

    def message(self, status: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of the next message; the first has the whole status.

        The ranks of the status must not be changed in place; other fields may.
        """
        number, before, ranks = self._number, self._sent.get("ranks", ()), status.get("ranks", ())
        self._number += 1
        fields = changed_fields(self._sent, status)
        self._sent = {**self._sent, **copy.deepcopy(fields), "ranks": ranks}
        if not are_same_ranks(before, ranks):
            return {"number": number, "fields": {**fields, "ranks": ranks}}
        whole, by_field = rank_changes(before, ranks)
        return {"number": number, "fields": fields, "ranks": whole, "rank_changes": by_field}


class StatusReceiver:
    """Puts the messages of a StatusSender together again."""

    def __init__(self) -> None:
        self._status: dict[str, Any] = {}
        self._number = 0

    def status(self, message: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the status after the next message; None: one is missing."""
        if message["number"] != self._number:
            return None
        self._number += 1
        self._status = {**self._status, **message["fields"]}
        if "ranks" in message:
            before = self._status.get("ranks", ())
            self._status["ranks"] = with_changes(before, message["ranks"], message["rank_changes"])
        return self._status
