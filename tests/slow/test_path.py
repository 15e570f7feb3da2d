"""The critical path of made-up reports: the line that makes a step long is named, whichever rank is last."""

from __future__ import annotations

from jupyter_dist.parts.slow.agent.asking.reports import RankReport, Sampled
from jupyter_dist.parts.slow.agent.judge import judge
from jupyter_dist.parts.slow.agent.observed import Observed, observe

from .reports import LOOP, place, seen, steps

TOKENS = place(4, "tokens = tokenise(text)")
LOADS = place(5, "for batch in loader:")
HELPER = place(2, "time.sleep(seconds)")
OWN_CALL, CALL_OF_ALL = place(6, "pause(0.05)"), place(5, "pause(0.002)")
STEP = 0.1


def sampled(arrivals, lasts, at_work, **more) -> Observed:
    """Each rank is sampled in the middle of each step: at work until it comes, then waiting for the last one."""
    reports = {}
    for rank, its in arrivals.items():
        found = {}
        for step, arrival in enumerate(its[1:], 1):
            at = int((10.0 + STEP * step + STEP / 2) * 1e6)
            is_last = lasts(step) in (rank, None)
            work = at_work(rank) if is_last else Sampled("wait", 1, 0.01, LOOP, None)
            found.setdefault(work, []).append(min(at, arrival.began - 1) if is_last else at)
        rows = tuple(work._replace(number=len(times), times=tuple(times)) for work, times in found.items())
        reports[rank] = [RankReport(seconds=8.0, now=0, samples=rows, arrivals=tuple(its), **more)]
    return observe(reports, {})


def by_turns(step):
    return step % 3


def of_turns(at_work):
    arrivals = steps(3, 60, 0.0, lambda step, rank: STEP if rank == by_turns(step) else 0.01)
    return judge(sampled(arrivals, by_turns, at_work))


def test_input_that_another_rank_waits_for_each_time_is_named_with_its_line():
    loads = Sampled("input", 1, 0.01, LOADS, None)
    assert ("input", LOADS) in [(cause.kind, cause.place) for cause in of_turns(lambda _: loads)]


def test_a_line_at_which_another_rank_is_last_each_time_is_named():
    runs = Sampled("run", 1, 0.01, TOKENS, None, runs="python")
    (cause,) = of_turns(lambda _: runs)
    assert (cause.kind, cause.place) == ("uneven", TOKENS)


def test_the_line_that_takes_the_most_of_all_ranks_is_a_fact():
    arrivals = steps(3, 60, STEP)
    runs = Sampled("run", 1, 0.01, TOKENS, None, runs="python")
    (cause,) = judge(sampled(arrivals, lambda _: None, lambda _: runs))
    assert (cause.kind, str(cause.ranks), cause.place) == ("line", "0-2", TOKENS)
    assert cause.message == "100 ms of 100 ms a step are spent at line 4 of cell [7]: tokens = tokenise(text)."
    # What torch does is what the loop is for, and a function in C may be.
    assert judge(sampled(arrivals, lambda _: None, lambda _: runs._replace(runs="torch"))) == []
    assert judge(sampled(arrivals, lambda _: None, lambda _: runs._replace(activity="backward"))) == []


def test_many_lines_that_take_a_step_together_are_named_where_none_of_them_stands_out():
    def scattered(share):
        """A rank is found once at each of the lines 10 to 59, and with the rest in torch."""
        lines = [place(number, f"n = n * {number} % 977") for number in range(10, 60)]
        own = [Sampled("run", 1, 0.01, line, None, runs="python") for line in lines]
        torch = Sampled("backward", round(50 / share) - 50, 0.1, LOOP, None)
        return seen(steps(3, 60, STEP), dict.fromkeys(range(3), (*own, torch)))

    (cause,) = judge(scattered(0.8))
    assert (cause.kind, str(cause.ranks), cause.place) == ("line", "0-2", None)
    assert cause.message.endswith("a step are spent at lines 10 to 59 of cell [7], none of which stands out.")
    assert judge(scattered(0.3)) == []


def test_objects_that_are_pickled_are_named_and_not_the_garbage_collector():
    pickles = Sampled("objects", 1, 0.01, LOOP, None)
    seen = sampled(steps(3, 60, STEP), lambda _: None, lambda _: pickles, collecting_seconds=2.0)
    (cause,) = judge(seen)
    assert (cause.kind, cause.place) == ("objects", LOOP)


def test_the_collector_is_not_blamed_where_only_some_ranks_are_found_making_objects():
    """On a busy machine, the others are found waiting for these."""
    some = (Sampled("objects", 20, 0.1, LOOP, None), Sampled("wait", 80, 0.1, LOOP, None))
    rest = (Sampled("wait", 100, 0.1, LOOP, None),)
    parts = {0: some, 1: rest, 2: rest}
    assert "collector" not in [one.kind for one in judge(seen(steps(3, 60, STEP), parts, collecting_seconds=2.0))]
    parts[0] = rest
    assert "collector" in [one.kind for one in judge(seen(steps(3, 60, STEP), parts, collecting_seconds=2.0))]


def test_the_line_of_a_generator_that_takes_nearly_all_of_its_loop_is_named():
    inner = Sampled("run", 1, 0.01, HELPER, None, outer=LOADS, runs="c")
    (cause,) = judge(sampled(steps(3, 60, STEP), lambda _: None, lambda _: inner))
    assert (cause.kind, cause.place) == ("line", HELPER)


def test_in_a_helper_that_all_ranks_call_the_call_of_the_late_rank_is_named():
    def at_work(rank):
        return Sampled("run", 1, 0.01, HELPER, None, outer=OWN_CALL if rank == 1 else CALL_OF_ALL)

    def last(step):
        return None if step % 10 == 0 else 1

    arrivals = steps(3, 60, 0.0, lambda step, rank: STEP if last(step) in (rank, None) else 0.01)
    (cause,) = judge(sampled(arrivals, last, at_work))
    assert (cause.kind, str(cause.ranks), cause.place) == ("straggler", "1", OWN_CALL)
