"""The looks at a cell: how many collectives ranks report, and what is followed for longer than what is judged."""

from __future__ import annotations

from jupyter_dist.parts.slow.agent.asking.clocks import Clocks
from jupyter_dist.parts.slow.agent.asking.reports import RankReport
from jupyter_dist.parts.slow.agent.pacewatch import (
    LATER_ARRIVALS,
    LATER_SECONDS,
    LEAST_ARRIVALS,
    NUM_QUICK,
    NUM_STEPS,
    QUICK_ARRIVALS,
    WatchedCell,
)

from .reports import samples, steps

BALANCED = samples(wait=10, backward=60, run=30)


def looked(number, every, layers=1, memory=0, seconds=0.1):
    """A cell of two ranks after so many looks; a step has `layers` collectives of different sizes."""
    cell = WatchedCell("e")
    for look in range(number):
        found = {}
        for rank, arrivals in steps(2, 60, seconds / layers, first=1 + 1000 * look).items():
            begun = tuple(
                one._replace(began=one.began + int(1e6 * every * look), num_bytes=one.seq % layers) for one in arrivals
            )
            held = (100 << 20) + memory * look
            found[rank] = RankReport(every, 0, BALANCED, begun, memory_bytes=held)
        cell.take(every * look, found, Clocks(), {0: "", 1: ""})
    return cell


def test_ranks_report_as_many_collectives_as_the_steps_need():
    assert WatchedCell("e").max_arrivals == QUICK_ARRIVALS
    assert looked(2, 1.8).max_arrivals == QUICK_ARRIVALS
    assert looked(NUM_QUICK, 1.8).max_arrivals == LATER_ARRIVALS
    assert looked(NUM_QUICK, 1.8, layers=10).max_arrivals == NUM_STEPS * 10
    assert looked(NUM_QUICK, 1.8, seconds=0.002).max_arrivals == 175  # of a third of a second
    many = looked(NUM_QUICK, 1.8)
    many.num_ranks = 1024
    assert many.max_arrivals == LEAST_ARRIVALS


def test_memory_that_grows_without_a_variable_is_named_over_more_looks_than_are_judged():
    assert not looked(6, LATER_SECONDS, memory=40 << 20).causes
    (cause,) = looked(8, LATER_SECONDS, memory=40 << 20).causes
    assert cause["kind"] == "memory"
    assert not looked(8, LATER_SECONDS).causes
