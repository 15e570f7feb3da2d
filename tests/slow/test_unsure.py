"""Samples that a rank cannot place are moved to the lines at which it was seen from outside, and no further."""

from __future__ import annotations

import asyncio

from jupyter_dist.parts.slow.agent.asking.reports import RankReport, Sampled
from jupyter_dist.parts.slow.agent.asking.unsure import NUM_LOOKS, UnsureLines

from .reports import CELL, place

LONG, QUICK = place(4, "found = -1 in numbers"), place(5, "n = len(numbers)")
INSIDE = {"file": "/lib/python3.11/site-packages/torch/nn/functional.py", "line": 7, "function": "linear", "code": ""}


class SeenRank:
    """A rank whose process is seen at these frames, one after the other."""

    rank = 1

    def __init__(self, *frames):
        self._frames = frames
        self._looks = 0

    async def line_if_running(self):
        self._looks += 1
        return self._frames[self._looks % len(self._frames)]


def at(line):
    return [{"file": CELL, "line": line, "function": "<module>", "code": ""}]


def settled(rank, *samples):
    report = asyncio.run(UnsureLines().settle(rank, RankReport(seconds=1.0, now=0, samples=samples)))
    found = {}
    for sampled in report.samples:
        line = sampled.place and sampled.place.line
        found[line] = found.get(line, 0) + sampled.number
        assert not sampled.maybe
    return found


def unsure(number):
    return Sampled("run", number, 0.0, QUICK, None, maybe=(LONG,))


def test_samples_go_to_the_line_at_which_the_rank_is_seen():
    assert settled(SeenRank(at(4)), unsure(10)) == {4: 10}
    assert settled(SeenRank(at(5)), unsure(10)) == {5: 10}


def test_no_more_samples_are_moved_than_the_line_has_of_the_time():
    # Seen in every fourth moment at line 4; otherwise it waits, or is in a function of torch.
    rank = SeenRank(at(4), [], [], [*at(9), INSIDE])
    assert settled(rank, unsure(8), Sampled("run", 12, 0.0, place(9, "model(batch)"), None)) == {
        9: 12,
        4: 5,
        5: 3,
    }


def test_a_rank_whose_samples_are_sure_is_not_looked_at():
    rank = SeenRank(at(4))
    assert settled(rank, Sampled("run", 10, 0.0, QUICK, None)) == {5: 10}
    assert rank._looks == 0
    settled(rank, unsure(1))
    assert rank._looks == NUM_LOOKS


def test_few_unsure_samples_have_no_line():
    assert settled(SeenRank(at(4)), unsure(1), Sampled("wait", 30, 0.0, QUICK, None)) == {5: 30, None: 1}
