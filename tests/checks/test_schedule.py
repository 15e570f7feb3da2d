"""Which steps are looked at: at numbers that all ranks choose alike, and within the budget."""

from __future__ import annotations

import pytest

from jupyter_dist.parts.checks.observing import schedule
from jupyter_dist.parts.checks.observing.schedule import BUDGET, NUM_FIRST, Schedule


class Clock:
    now = 0.0

    def perf_counter(self):
        return self.now


def looks_of(monkeypatch, num_steps, step_seconds, cost, change=None):
    """The steps that a loop of equal steps is looked at, and its schedule."""
    clock = Clock()
    monkeypatch.setattr(schedule, "time", clock)
    plan, found = Schedule(), []
    for step in range(1, num_steps + 1):
        clock.now += step_seconds
        plan.num_steps = step
        if step == change:
            plan.changed()
        if step >= plan.next_event:
            if plan.is_due:
                found.append(step)
                clock.now += cost
                plan.looked(cost)
            plan.plan()
            assert plan.next_event > step
    return found, plan


@pytest.mark.parametrize("step_seconds", [0.0005, 0.01, 0.3, 2.0])
@pytest.mark.parametrize("change", [None, 5, 63, 64, 500])
def test_looks_go_on_within_the_budget_however_long_a_loop_is(monkeypatch, step_seconds, change):
    found, plan = looks_of(monkeypatch, 20_000, step_seconds, 0.002, change)
    assert found[:NUM_FIRST] == [1, 2, 3, 4]
    assert found[-1] > 10_000
    assert plan.spent <= BUDGET * plan.seconds + 20 * 0.002  # the first looks, and looks after a change


def test_ranks_of_other_speeds_look_at_common_steps(monkeypatch):
    slow, _ = looks_of(monkeypatch, 20_000, 0.01, 0.004)
    fast, _ = looks_of(monkeypatch, 20_000, 0.01, 0.001)
    assert len({*slow} & {*fast}) >= len(slow) // 2 > 10
