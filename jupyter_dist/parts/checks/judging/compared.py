"""The parts of a model on all ranks side by side. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jupyter_dist.protocol.models.sentences import say, templates, words_of
from jupyter_dist.protocol.ranks import RankSet, name_ranks

if TYPE_CHECKING:
    from jupyter_dist.parts.checks import models

MAX_DIFFERENCES = 100
MAX_VALUES = 8  # of a part
MAX_TEXT = 300
_TITLES = templates("parameter %1", "buffer %1", "state %1", "setting %1", "sampler %1", "random state of %1")
_BY_KIND = {title.partition(" ")[0]: title for title in _TITLES}


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
    not_asked: list[str] = [say("%1: %2", name_ranks([rank]), why) for rank, why in silent.items()]
    return {
        "name": name,
        "ranks": str(RankSet(answers)),
        "alike": num_alike,
        "differ": len(differences),
        "sharded": num_sharded,
        "differences": differences[:MAX_DIFFERENCES],
        "not_asked": not_asked,
        "not_asked_words": [words_of(one) for one in not_asked],
    }


def _difference(
    what: str, part: str, values: Mapping[int, tuple[str | None, Any]], missing: RankSet
) -> models.ModelDifference:
    alike: dict[str, tuple[list[int], Any]] = {}
    for rank, (digest, first) in values.items():
        alike.setdefault(str(digest)[:MAX_TEXT], ([], first))[0].append(rank)
    words: list[str] = [
        say("%1: %2", name_ranks(ranks), digest)
        if first is None
        else say("%1: %2, first value %3", name_ranks(ranks), digest, f"{first:.6g}")
        for digest, (ranks, first) in list(alike.items())[:MAX_VALUES]
    ]
    words += [say("%1: not there", name_ranks(missing))] if len(missing) else []
    title = say(_BY_KIND[what], part) if what in _BY_KIND else part
    return {
        "what": what,
        "name": part,
        "title_words": words_of(title),
        "values": words,
        "values_words": [words_of(one) for one in words],
    }
