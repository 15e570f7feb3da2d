"""Made-up reports of ranks, for the rules that judge the pace of a cell."""

from __future__ import annotations

from jupyter_dist.parts.slow.agent.asking.reports import Arrival, RankReport, Sampled
from jupyter_dist.parts.slow.agent.observed import Observed, observe
from jupyter_dist.transport.rows import CodePlace

CELL = "<ipython-input-7-0123456789ab>"
LOOP = CodePlace(CELL, 3, "<module>", "loss.backward()")
SLOW = CodePlace(CELL, 12, "<module>", "tokens = tokenise(batch)")


def place(line, code):
    return CodePlace(CELL, line, "<module>", code)


def steps(num_ranks, number, seconds, late=None, group="0", first=1, num_bytes=4096, name="all_reduce"):
    """The arrivals of ranks at one collective a step; `late(step, rank)`: by how many seconds a rank comes late."""
    arrivals = {rank: [] for rank in range(num_ranks)}
    now = 10.0
    for step in range(number):
        begins = [now + seconds + (late(step, rank) if late else 0.0) for rank in range(num_ranks)]
        for rank, begin in enumerate(begins):
            arrivals[rank].append(Arrival(group, name, num_bytes, first + step, int(begin * 1e6), None))
        now = max(begins)
    return arrivals


def samples(**parts):
    """Samples of a rank: how many of each activity, at a line of its own if one is given as (number, place)."""
    found = []
    for activity, told in parts.items():
        number, at = told if isinstance(told, tuple) else (told, LOOP)
        found.append(Sampled(activity, number, 0.01 * number, at, None))
    return tuple(found)


def seen(arrivals, sampled, shifts=None, unsure=0.0, **fields) -> Observed:
    """What is observed if each rank reports once; `fields` are of all reports, or of each by rank."""
    reports = {}
    for rank, its in arrivals.items():
        own = {name: value[rank] if isinstance(value, dict) else value for name, value in fields.items()}
        reports[rank] = [RankReport(seconds=8.0, now=0, samples=sampled[rank], arrivals=tuple(its), **own)]
    return observe(reports, shifts or {}, unsure)
