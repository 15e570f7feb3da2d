"""The answer to `peek_values`: the values of ranks, equal ones once."""

from __future__ import annotations

import ast
from typing import Any

from jupyter_dist.parts.peek import models
from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.protocol.models.sentences import say, with_words, words_of
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.part import ServerPart

_FIELDS = ("type", "shape", "dtype", "device", "value", "place")


class PeekOperations(ServerPart):
    """Answers which values names have."""

    async def peek_values(self, group: ManagedGroup, names: str = "", ranks: str = "all") -> models.Peeked:
        """Return the values of names on ranks."""
        mirror = group.mirror
        chosen = list(mirror.status.rank_set(ranks))
        asked = [_checked(name.strip()) for name in names.split(",") if name.strip()]
        answer, _ = await mirror.ask("peek", names=asked, ranks=chosen)
        return _fold(answer["found"])


def _checked(name: str) -> str:
    try:
        ast.parse(name, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        hint = say("Write names with commas between them, such as loss, model.weight.")
        raise bad_request(say("'%1' is no name.", f"{name:.60}"), hint) from None
    return name


def _fold(found: list[dict[str, Any]]) -> models.Peeked:
    alike: dict[tuple[str, ...], tuple[dict[str, Any], list[int]]] = {}
    missing: dict[str, list[int]] = {}
    for one in found:
        for name, row in (one.get("values") or {}).items():
            if row is None:
                missing.setdefault(name, []).append(one["rank"])
            else:
                key = (name, *(str(row.get(field, "")) for field in _FIELDS))
                alike.setdefault(key, (row, []))[1].append(one["rank"])
    values = [_value(key, row, RankSet(ranks)) for key, (row, ranks) in alike.items()]
    return {
        "values": sorted(values, key=lambda value: value["name"]),
        "missing": {name: str(RankSet(ranks)) for name, ranks in missing.items()},
        "silent": [
            {"rank": one["rank"], "why": one["why"], "why_words": words_of(with_words("", one.get("why_words")))}
            for one in found
            if "why" in one
        ],
    }


def _value(key: tuple[str, ...], row: dict[str, Any], ranks: RankSet) -> models.PeekedValue:
    name, kind, shape, dtype, device, value, place = key
    return {
        "ranks": str(ranks),
        "name": name,
        "type": kind,
        "shape": shape,
        "dtype": dtype,
        "device": device,
        "value": value,
        "place": place,
        "place_words": words_of(with_words(place, row.get("place_words"))),
    }
