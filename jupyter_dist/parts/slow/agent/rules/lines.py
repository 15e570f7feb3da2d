"""Names the line that takes the most of a step, where nothing else explains it: a fact, and no fault. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from jupyter_dist.parts.slow.agent.observed import RUN, Observed, RankPaceSeen
from jupyter_dist.parts.slow.agent.reports import CodePlace, Sampled
from jupyter_dist.protocol.ranks import RankSet

from .causes import Cause, at_place, percent, seconds_in_words

# Of a step. What a line calls in C itself may be the work that the loop is for; what torch does in Python is.
LEAST = {"python": 0.2, "c": 0.4}
NEARLY = 0.8
LEAST_OF_ALL = 0.6  # of the ranks must be found there, if it is not known who waits for whom
LIKE_OTHERS = 0.3  # of the most that a rank is found there

_ByRank = dict[int, float]
_Shares = defaultdict[tuple[CodePlace, str], _ByRank]


def find_line(seen: Observed) -> Cause | None:
    """Return the line of Python code, or of a function in C, that takes the most of a step."""
    if not seen.has_steps or not seen.is_sampled:
        return None
    by_rank = _on_path(seen) if seen.path.is_known else _on_all(seen)
    shares = {place: sum(ranks.values()) for place, ranks in by_rank.items()}
    most = max(shares.values(), default=0.0)
    # The innermost line that takes nearly as much as the one that takes the most, which has called it.
    place = next((place for place, share in shares.items() if share >= NEARLY * most), None)
    if place is None:
        return None
    share = shares[place]
    takes = f"{percent(share)} of the time is"
    if (step := seen.step_seconds) is not None:
        takes = f"{seconds_in_words(share * step)} of {seconds_in_words(step)} a step are"
    own = {rank: _own_share(its, place) for rank, its in seen.ranks.items()}
    ranks = RankSet(rank for rank in own if own[rank] >= LIKE_OTHERS * max(own.values()))
    evidence = [f"The rank that the others wait for next is found there in {percent(share)} of the samples."]
    if not seen.path.is_known:
        evidence = [f"The ranks are found there in {percent(share)} of the samples of their stacks."]
    advice = "If the loop is not there for this: do it once before the loop, in a thread, or in other processes."
    return Cause("line", ranks, share, f"{takes} spent {at_place(place)[2:]}.", evidence, advice, place)


def _on_path(seen: Observed) -> dict[CodePlace, _ByRank]:
    """Return the shares of the critical path that lines have, by rank, if they are large enough."""
    total = seen.path.samples.total()
    found: _Shares = defaultdict(lambda: defaultdict(float))
    for (rank, sampled), number in seen.path.samples.items():
        for key in _keys(sampled):
            found[key][rank] += number / total
    return {place: ranks for (place, runs), ranks in found.items() if sum(ranks.values()) >= LEAST[runs]}


def _on_all(seen: Observed) -> dict[CodePlace, _ByRank]:
    """Return the shares of the time that lines have, by rank, if they are large enough on most ranks."""
    found: _Shares = defaultdict(lambda: dict.fromkeys(seen.ranks, 0.0))
    for rank, its in seen.ranks.items():
        for sampled in (one for report in its.reports for one in report.samples):
            for key in _keys(sampled):
                found[key][rank] += sampled.number / its.num_samples / len(seen.ranks)
    return {
        place: shares
        for (place, runs), shares in found.items()
        if sorted(shares.values())[int((1 - LEAST_OF_ALL) * len(shares))] >= LEAST[runs] / len(shares)
    }


def _own_share(its: RankPaceSeen, place: CodePlace) -> float:
    of_rank = (one for report in its.reports for one in report.samples)
    return sum(one.number for one in of_rank if place in (one.place, one.outer)) / its.num_samples


def _keys(sampled: Sampled) -> Iterator[tuple[CodePlace, str]]:
    """Yield the line of a sample, and the one that has called its function: several lines of it may take the time."""
    if sampled.activity == RUN and sampled.runs in LEAST:
        if sampled.place is not None:
            yield sampled.place, sampled.runs
        if sampled.outer is not None:
            yield sampled.outer, "python"
