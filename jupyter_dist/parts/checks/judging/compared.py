"""The parts of a model on all ranks side by side. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jupyter_dist.protocol.ranks import RankSet

if TYPE_CHECKING:
    from jupyter_dist.parts.checks import models

MAX_DIFFERENCES = 100
MAX_VALUES = 8  # of a part
MAX_TEXT = 300


def compare(name: str, answers: Mapping[int, Any], silent: Mapping[int, str]) -> models.ComparedModel:
    """Return which parts of a model differ between the ranks that have answered with the rows of `digests_of`."""
    parts: dict[tuple[str, str], dict[int, tuple[str | None, Any]]] = {}
    for rank, rows in answers.items():
        for row in rows if isinstance(rows, list) else ():
            what, part, digest, first = row
            parts.setdefault((str(what)[:MAX_TEXT], str(part)[:MAX_TEXT]), {})[rank] = (digest, first)
    differences: list[models.ModelDifference] = []
    num_alike = num_sharded = 0
    for (what, part), values in parts.items():
        if any(digest is None for digest, _ in values.values()):
            num_sharded += 1
        elif len(values) == len(answers) and len({digest for digest, _ in values.values()}) == 1:
            num_alike += 1
        else:
            differences.append(_difference(what, part, values, RankSet(set(answers) - set(values))))
    return {
        "name": name,
        "ranks": str(RankSet(answers)),
        "alike": num_alike,
        "differ": len(differences),
        "sharded": num_sharded,
        "differences": differences[:MAX_DIFFERENCES],
        "not_asked": [f"rank {rank}: {why}" for rank, why in silent.items()],
    }


def _difference(
    what: str, part: str, values: Mapping[int, tuple[str | None, Any]], missing: RankSet
) -> models.ModelDifference:
    alike: dict[str, tuple[list[int], Any]] = {}
    for rank, (digest, first) in values.items():
        alike.setdefault(str(digest)[:MAX_TEXT], ([], first))[0].append(rank)
    words = [
        f"ranks {RankSet(ranks)}: {digest}"
        + (f", first value {first:.6g}" if isinstance(first, float | int) and not isinstance(first, bool) else "")
        for digest, (ranks, first) in list(alike.items())[:MAX_VALUES]
    ]
    words += [f"ranks {missing}: not there"] if len(missing) else []
    return {"what": what, "name": part, "values": words}
