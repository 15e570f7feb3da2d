"""The steps of a loop, from made-up collectives: how many collectives they have, and how long they take."""

from __future__ import annotations

import random
from bisect import bisect

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_dist.parts.slow.agent.asking.clocks import Clocks
from jupyter_dist.parts.slow.agent.asking.reports import RankReport
from jupyter_dist.parts.slow.agent.meetings import MatchedCollective, find_waits
from jupyter_dist.parts.slow.agent.pacewatch import WatchedCell
from jupyter_dist.parts.slow.agent.steps import find_steps

from .reports import samples, steps

BUILD = [("0", "broadcast", size) for size in (9, 9, 9, 4)]
EVALUATION = [("0", "all_reduce", 1), ("0", "all_gather", 2)]


def collectives(*phases):
    """Collectives of two ranks; a phase has kinds, and the seconds from each to the next one."""
    found, now, numbers = [], 10e6, {}
    for kinds, seconds in phases:
        for group, name, size in kinds:
            seq = numbers[group] = numbers.get(group, 0) + 1
            found.append(MatchedCollective(group, seq, name, size, {0: now, 1: now}, 0))
            now += 1e6 * seconds
    return found


def found_in(*phases):
    meetings = collectives(*phases)
    return find_steps(meetings, find_waits(meetings, 0.0), 0)


kinds = st.tuples(st.sampled_from("012"), st.sampled_from(["all_reduce", "all_gather"]), st.integers(10, 20))
loops = st.lists(kinds, min_size=1, max_size=12)


def shortest(loop):
    return next(
        n for n in range(1, len(loop) + 1) if loop == (loop[:n] * len(loop))[: len(loop)] and len(loop) % n == 0
    )


@settings(max_examples=30, deadline=None)
@given(loop=loops, num_built=st.integers(0, 30), slow=st.floats(0.5, 20), jitter=st.integers(0, 1 << 30))
def test_what_precedes_a_loop_is_none_of_its_steps(loop, num_built, slow, jitter):
    """The broadcasts of a new model take long, and so does the first step; a step varies by a tenth."""
    chance = random.Random(jitter)
    number = max(8, 1 + 32 // len(loop))
    period = shortest(loop)
    rounds = [(loop, chance.uniform(0.9, 1.1) / len(loop)) for _ in range(number)]
    built = [(("0", "broadcast", index), slow) for index in range(min(num_built, number * len(loop) // 2))]
    found = found_in(*(([kind], seconds) for kind, seconds in built), (loop, 9.0), *rounds)
    assert found is not None
    assert found.period == period
    assert found.seconds == pytest.approx(period / len(loop), rel=0.101)


@settings(max_examples=30, deadline=None)
@given(loop=loops, every=st.integers(10, 20), seconds=st.floats(0.01, 2))
def test_evaluations_are_none_of_the_steps(loop, every, seconds):
    evaluation = (EVALUATION * max(1, every * len(loop) // 40), seconds)
    found = found_in(*[(loop, 1 / len(loop))] * every, evaluation, *[(loop, 1 / len(loop))] * every)
    if found is not None:
        assert found.period == shortest(loop)
        assert found.seconds == pytest.approx(found.period / len(loop))


@settings(max_examples=30, deadline=None)
@given(first=loops, second=loops, turns=st.lists(st.integers(1, 30), min_size=2, max_size=6))
def test_of_two_loops_in_turns_no_mixture_is_a_step(first, second, turns):
    """The first has steps of 1 s and the second of 3 s. If both together recur, they are a step as well."""
    second = [("9", name, size) for _, name, size in second]
    phases = []
    for turn, number in enumerate(turns):
        loop, seconds = (second, 3.0) if turn % 2 else (first, 1.0)
        phases += [(loop, seconds / len(loop))] * number
    found = found_in(*phases)
    if found is not None:
        times = [one.began[0] for one in collectives(*phases)]
        for span in found.spans:
            first_after = bisect(times, span.began + 1e6 * span.seconds - 1)
            assert first_after - times.index(span.began) == found.period


def test_gradients_that_accumulate_have_a_step_for_each_time_they_are_averaged():
    """Three passes without collectives, and one with three buckets."""
    buckets = [[("0", "all_reduce", size)] for size in (100, 100, 40)]
    step = [(buckets[0], 0.01), (buckets[1], 0.01), (buckets[2], 0.28)]
    found = found_in((BUILD, 2.0), *step * 20)
    assert (found.period, round(found.seconds, 6)) == (3, 0.3)


def test_a_loop_after_more_broadcasts_than_it_has_had_collectives_is_not_known_yet():
    built = ([("0", "broadcast", 9)] * 400, 0.001)
    step = ([("0", "all_reduce", size) for size in range(10)], 0.05)
    assert found_in(built, *[step] * 8) is None
    assert found_in(built, *[step] * 45).period == 10


def test_a_cause_and_the_lane_of_step_times_have_the_same_steps():
    """A model is built for 6 s in the cell that trains it, and rank 1 is late to each step."""
    cell = WatchedCell("e")
    late = steps(2, 30, 0.1, lambda step, rank: 0.2 * rank, first=20)
    busy = {0: samples(wait=60, run=40), 1: samples(run=100)}
    built = {rank: [one._replace(num_bytes=one.seq) for one in its] for rank, its in steps(2, 6, 1.0).items()}
    loop = {rank: [one._replace(began=one.began + 7_000_000) for one in late[rank]] for rank in late}
    for look in range(3):
        found = {}
        for rank in range(2):
            arrivals = [built[rank], loop[rank][:15], loop[rank][15:]][look]
            found[rank] = RankReport(4.5, 0, busy[rank], tuple(arrivals))
        cell.take(4.5 * look, found, Clocks(), {0: "", 1: ""})
    (cause,) = cell.causes
    assert "wait 200 ms of 300 ms a step" in cause["message"]
    assert cell.model()["steps"]["seconds"] == pytest.approx(0.3, rel=0.01)
    assert cell.model()["steps"]["trend"] == [pytest.approx(0.3, rel=0.01)] * 2
