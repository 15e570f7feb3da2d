"""Judges the training of a cell. Pure, and silent where it is not sure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from jupyter_dist.protocol.models.sentences import join, say

from .rules import averaging, data, facts, loop
from .seen import Seen
from .words import WORDS, Proof

MAX_SHOWN = 4
OF_MISSED = ("replicas_differ", "settings_differ", "samplers_differ", "subsets_differ", "labels_differ")

RULES: Sequence[Callable[[Seen], Iterator[Proof]]] = (
    loop.find,
    averaging.find_gradients,
    data.find,
    averaging.find_replicas,
    facts.find,
)
_ORDER = {name: place for place, name in enumerate(WORDS)}


def judge(seen: Seen) -> list[Proof]:
    """Return the errors, the worst first."""
    found = [_with_missed(seen, finding) for rule in RULES for finding in rule(seen)]
    return sorted(found, key=lambda finding: _ORDER[finding.kind])[:MAX_SHOWN]


def _with_missed(seen: Seen, finding: Proof) -> Proof:
    """Return a difference between ranks with the cells that some of them have not run."""
    missed = {rank: words for rank, words in seen.missed.items() if rank in finding.ranks}
    if finding.kind not in OF_MISSED or not missed:
        return finding
    more = [say("rank %1 has not run %2", rank, words) for rank, words in missed.items()]
    advice = join(say("Run what was missed there, with Catch up."), finding.advice)
    return replace(finding, evidence=[*finding.evidence[:4], *more[:2]], advice=advice)
