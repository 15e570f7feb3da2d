"""Where the time of a cell went, from made-up reports."""

from __future__ import annotations

from jupyter_dist.parts.slow.agent.asking.reports import RankReport
from jupyter_dist.parts.slow.agent.summary import PaceTotals

from .reports import samples, seen, steps


def test_the_trend_of_step_times_has_the_whole_cell_and_when_each_was_measured():
    totals = PaceTotals()
    for look in range(501):
        observed = seen(steps(2, 20, 0.1 + 0.001 * look), dict.fromkeys(range(2), samples(wait=10, run=90)))
        totals.add({}, observed, 1000.0 + look)
    found = totals.model("e", [])["steps"]
    assert len(found["trend"]) == len(found["times"]) <= 60
    assert found["times"] == sorted(found["times"])
    assert found["seconds"] == 0.6
    assert (found["times"][0] < 1020, found["times"][-1] > 1480) == (True, True)
    for at, seconds in zip(found["times"], found["trend"], strict=True):
        assert abs(seconds - (0.1 + 0.001 * (at - 1000))) < 1e-4


def test_a_rank_whose_stack_is_not_read_is_named():
    totals = PaceTotals()
    observed = seen(steps(2, 20, 0.1), {0: samples(wait=10, run=90), 1: ()})
    reports = {rank: RankReport(seconds=2.0, now=0, samples=its) for rank, its in enumerate([samples(run=9), ()])}
    totals.add(reports, observed, 1000.0)
    assert totals.model("e", [])["unknown"] == ["The stacks of rank 1 could not be read."]
