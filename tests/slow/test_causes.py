"""Causes other than stragglers, on made-up reports: who is named, with which line, and who is not."""

from __future__ import annotations

import pytest

from jupyter_dist.parts.slow.agent.asking.reports import Arrival, Grown, RankReport, Sampled, ShardedUpdates, Updates
from jupyter_dist.parts.slow.agent.judge import judge
from jupyter_dist.parts.slow.agent.observed import StepsSeen, observe

from .reports import LOOP, SLOW, place, samples, seen, steps

LOADS = place(5, "for batch in loader:")
READS = place(17, "return decode(self.files[index])")
FSYNC = place(9, "os.fsync(log.fileno())")
BALANCED = samples(wait=10, backward=60, run=30)


def alike(sampled, num_ranks=4, **fields):
    return seen(steps(num_ranks, 60, 0.1), dict.fromkeys(range(num_ranks), sampled), **fields)


def only(found):
    (cause,) = judge(found)
    return cause


def test_balanced_steps_have_no_cause():
    assert judge(alike(BALANCED)) == []


def test_input_names_the_loop_and_the_line_of_the_dataset():
    in_rank = (Sampled("input", 60, 0.1, LOADS, READS), *samples(backward=40))
    cause = only(alike(in_rank))
    assert (cause.kind, cause.place, str(cause.ranks)) == ("input", LOADS, "0-3")
    assert (
        cause.message
        == "Input: 60 % of the time ranks wait for the next batch, at line 5 of cell [7]: for batch in loader."
    )
    assert str(READS) in cause.evidence[1]
    assert "num_workers" in cause.advice
    assert "persistent_workers" in only(alike((Sampled("workers", 60, 0.1, LOADS, None), *samples(run=40)))).advice
    assert judge(alike((Sampled("input", 20, 0.1, LOADS, None), *samples(backward=80)))) == []


def test_what_is_over_is_no_cause_although_it_took_much_of_the_time():
    """A first epoch that fills a cache."""
    loading, training = (Sampled("input", 18, 0.1, LOADS, READS),), samples(backward=17, input=(1, LOADS))

    def after(*parts):
        reports = {}
        for rank, arrivals in steps(2, 60, 0.1).items():
            its = [tuple(arrivals[20 * look : 20 * look + 20]) for look in range(len(parts))]
            reports[rank] = [RankReport(2.0, 0, part, arrived) for part, arrived in zip(parts, its, strict=True)]
        return observe(reports, {})

    assert only(after(training, loading, loading)).kind == "input"
    assert judge(after(loading, loading, training)) == []


def test_saving_printing_and_files_name_their_line():
    for activity, kind in (("save", "saving"), ("print", "printing")):
        cause = only(alike(samples(**{activity: (40, FSYNC), "backward": 60})))
        assert (cause.kind, cause.place) == (kind, FSYNC)
    blocked = (Sampled("run", 40, 0.1, FSYNC, None, True), *samples(backward=60))
    assert (only(alike(blocked)).kind, only(alike(blocked)).place) == ("blocked", FSYNC)
    assert judge(alike((Sampled("run", 40, 0.1, FSYNC, None), *samples(backward=60)))) == []


def test_compiling_again_is_a_cause_and_compiling_once_is_not():
    compiles = samples(compile=30, run=70)
    assert only(alike(compiles, num_compiles=9)).kind == "compiling"
    assert judge(alike(compiles, num_compiles=3)) == []
    assert judge(alike(samples(compile=5, run=95), num_compiles=9)) == []


def test_looking_for_unused_parameters_is_named_with_the_forward_pass():
    forward = place(7, "output = model(batch)")
    cause = only(alike(samples(unused=(15, forward), backward=85)))
    assert (cause.kind, cause.place) == ("unused_parameters", forward)
    assert judge(alike(samples(unused=(6, forward), backward=94))) == []


def test_steps_that_are_tracked_are_the_steps():
    tracked = tuple((20.0 + 0.25 * number, 10 * number) for number in range(9))
    found = alike(BALANCED, steps=tracked)
    assert found.step_seconds == 0.025
    assert alike(BALANCED).step_seconds == pytest.approx(0.1)
    for none in (tracked[:1], tuple((at, 7) for at, _ in tracked), tuple((at, -step) for at, step in tracked)):
        assert alike(BALANCED, steps=none).step_seconds == pytest.approx(0.1)
    alone = {0: [RankReport(8.0, 0, samples(run=100), (), steps=tracked, collecting_seconds=2.0)]}
    assert [cause.kind for cause in judge(observe(alone, {}))] == ["collector"]  # without collectives


def test_many_reduces_to_one_rank_are_small_collectives_although_the_others_wait_for_it():
    """Of forty metrics: the other ranks have sent theirs, and wait in the next collective of all."""
    arrivals = steps(3, 400, 0.0005, name="reduce")
    gathered = {rank: samples(wait=(90, LOOP), run=10) for rank in range(3)}
    ahead = {rank: [one._replace(began=one.began - 400 * (rank > 0)) for one in its] for rank, its in arrivals.items()}
    cause = only(seen(ahead, gathered))
    assert (cause.kind, str(cause.ranks), cause.place) == ("small_collectives", "0-2", LOOP)
    as_broadcasts = {rank: [one._replace(name="all_reduce") for one in its] for rank, its in ahead.items()}
    assert "small_collectives" not in [cause.kind for cause in judge(seen(as_broadcasts, gathered))]


def test_pauses_of_the_collector_are_counted_by_rank():
    cause = only(alike(BALANCED, collecting_seconds={0: 0.1, 1: 2.0, 2: 0.1, 3: 0.1}, num_collections=50))
    assert (cause.kind, str(cause.ranks)) == ("collector", "1")
    assert "25 %" in cause.message
    assert judge(alike(BALANCED, collecting_seconds=0.3)) == []
    named = only(alike(BALANCED, collecting_seconds=2.0, num_collections=50, collecting_place=SLOW))
    assert named.place == SLOW
    assert named.message.endswith("of the time of ranks 0-3, at line 12 of cell [7]: tokens = tokenise(batch).")
    assert judge(alike((), collecting_seconds=2.0)) == []  # what makes the objects is not known


def growing(added, grown=(), num_looks=6):
    """Reports of two seconds of two ranks, whose memory grows by these bytes from one to the next."""
    reports = {}
    for rank, arrivals in steps(2, 60, 0.1).items():
        total, its = 100 << 20, []
        for number in range(num_looks):
            part = tuple(arrivals[number * 10 : number * 10 + 10])
            its.append(RankReport(2.0, 0, BALANCED, part, memory_bytes=total, grown=grown))
            total += added[number]
        reports[rank] = its
    return observe(reports, {})


def test_memory_that_grows_with_each_step_is_named_with_the_list_and_its_line():
    line = place(22, "losses.append(loss)")
    cause = only(growing([40 << 20] * 6, (Grown("losses", "list", 500, line),)))
    assert (cause.kind, cause.place) == ("memory", line)
    assert cause.message.startswith("Memory grows by 2.1 MB a step on all ranks: list losses, at line 22 of cell [7]")
    assert only(growing([40 << 20] * 6)).place is None
    assert judge(growing([40 << 20] * 4, num_looks=4)) == []  # without a variable, more looks are needed
    assert only(growing([40 << 20] * 4, (Grown("losses", "list", 500, line),), num_looks=4)).place == line
    summed = only(growing([40 << 20] * 4, (Grown("total", "tensor", 0, line),), num_looks=4))
    assert len(summed.evidence) == 1
    assert summed.advice.startswith("Keep numbers in total")
    for added in ([0] * 6, [400 << 20, 100 << 20, 4 << 20, 3 << 20, 2 << 20, 2 << 20], [40 << 20] * 4 + [0, 0]):
        assert judge(growing(added)) == []


def test_a_rank_without_a_core_is_named_and_busy_machines_are_not():
    cause = only(alike(BALANCED, run_delay_seconds={0: 0.1, 1: 0.1, 2: 3.2, 3: 0.2}))
    assert (cause.kind, str(cause.ranks)) == ("contention", "2")
    assert judge(alike(BALANCED, run_delay_seconds=3.2)) == []


def test_communication_is_named_unless_ranks_wait_for_each_other_or_for_cores():
    talking = samples(wait=60, backward=40)
    wide = steps(4, 60, 0.1, num_bytes=8_000_000)
    cause = only(seen(wide, dict.fromkeys(range(4), talking)))
    assert (cause.kind, cause.place) == ("communication", LOOP)
    assert "8.0 MB" in cause.evidence[1]
    assert judge(seen(wide, dict.fromkeys(range(4), talking), run_delay_seconds=2.0)) == []
    assert judge(alike(talking)) == []
    several = {rank: [] for rank in range(2)}
    for layer in range(20):
        for rank, its in steps(2, 40, 0.1, num_bytes=100 + layer).items():
            several[rank] += [one._replace(seq=one.seq * 20 + layer, began=one.began + layer) for one in its]
    assert only(seen(several, dict.fromkeys(range(2), talking))).kind == "small_collectives"
    buckets = seen(steps(2, 200, 0.003), dict.fromkeys(range(2), talking))  # equal ones: no sequence of them recurs
    assert only(buckets).message.startswith("333 small collectives a second take 60 %")


def test_the_only_collective_of_a_short_step_is_not_called_small_because_there_is_nothing_to_join():
    def trained(changes):
        """Two ranks whose steps are 5 ms long, and whose model changes so often in a look of 200 collectives."""
        reports = {}
        for rank, arrivals in steps(2, 600, 0.005).items():
            looks = [tuple(arrivals[first : first + 200]) for first in (0, 200, 400)]
            models, sampled = (Updates("0", 99, changes),), samples(wait=60, backward=40)
            reports[rank] = [RankReport(1.0, 0, sampled, look, updates=models) for look in looks]
        return observe(reports, {})

    assert judge(trained(200)) == []
    assert judge(trained(400)) == []  # an optimizer with weight decay
    assert only(trained(50)).kind == only(trained(0)).kind == "small_collectives"


def accumulating(changes, gradients=400_000, at_once=400_000, num_looks=4, **fields):
    """Reports of two ranks that average `at_once` bytes a step, 15 steps a look, of a model that changes so often."""
    reports = {}
    for rank, arrivals in steps(2, 15 * num_looks, 0.1, num_bytes=at_once).items():
        parts = [tuple(arrivals[15 * look : 15 * look + 15]) for look in range(num_looks)]
        model = [Updates("0", gradients, changes), Updates("0", 88, 0)]  # and one of an earlier cell
        sampled = samples(wait=40, backward=60)
        reports[rank] = [RankReport(1.5, 0, sampled, part, updates=tuple(model), **fields) for part in parts]
    return observe(reports, {})


def test_gradients_that_are_averaged_more_often_than_the_optimizer_steps_are_named_on_a_busy_machine_too():
    cause = only(accumulating(changes=2))
    assert (cause.kind, cause.place, cause.share) == ("accumulation", LOOP, pytest.approx(0.4 * (1 - 2 / 15)))
    assert cause.message.startswith("Gradients are averaged over the ranks 8 times for each step of the optimizer")
    assert cause.evidence[0] == "They were averaged 45 times, while the parameters changed 6 times."
    assert only(accumulating(changes=2, run_delay_seconds=0.8)).kind == "accumulation"
    assert only(accumulating(changes=2, at_once=800_000)).message.startswith("Gradients are averaged over the ranks 15")
    innocent = [
        accumulating(changes=15),
        accumulating(changes=30),  # an optimizer with weight decay
        accumulating(changes=0),  # evaluation, or changes that torch does not count
        accumulating(changes=2, at_once=4096),  # losses, and no gradients
        accumulating(changes=2, at_once=600_000),
        accumulating(changes=2, num_looks=1),
    ]
    for seen_of in innocent:
        assert judge(seen_of) == []


def sharded(changes, num_gradients=2, metrics=False):
    """Reports of two ranks: a step gathers two modules, then reduces their gradients; and metrics, if there are any."""
    kinds = [("all_gather", 2000), ("all_gather", 1000), ("_reduce_scatter_base", 1000), ("_reduce_scatter_base", 2000)]
    kinds += [("all_reduce", 8)] * metrics
    reports = {}
    for rank in range(2):
        looks = []
        for look in range(4):
            arrivals = []
            for number in range(20 * len(kinds)):
                seq = 20 * len(kinds) * look + number + 1
                name, num_bytes = kinds[number % len(kinds)]
                arrivals.append(Arrival("0", name, num_bytes, seq, 20_000 * seq, None))
            models = (ShardedUpdates("0", 1000, num_gradients, changes), ShardedUpdates("0", 500, 1, 0))
            sampled = samples(wait=60, backward=40)
            looks.append(RankReport(1.6, 0, sampled, tuple(arrivals), sharded_updates=models))
        reports[rank] = looks
    return observe(reports, {})


def test_gradients_of_a_sharded_model_are_counted_by_their_collectives():
    for metrics in (False, True):
        cause = only(sharded(changes=5, metrics=metrics))
        assert (cause.kind, cause.place) == ("accumulation", LOOP)
        assert cause.message.startswith("Gradients are averaged over the ranks 4 times for each step of the optimizer")
        assert "set_requires_gradient_sync(False) of an FSDP2 model" in cause.advice
        # Half of the bytes are gathered, which is needed each time.
        assert cause.share == pytest.approx(0.6 * 0.5 * (1 - 1 / 4), abs=0.01)
    for innocent in (sharded(changes=20), sharded(changes=40), sharded(changes=0), sharded(changes=5, num_gradients=3)):
        assert judge(innocent) == []


def test_ranks_that_take_turns_in_coming_last_are_uneven():
    arrivals = steps(4, 60, 0.1, lambda step, rank: 0.2 * (rank == step % 4))
    waiting = dict.fromkeys(range(4), samples(wait=50, backward=50))
    assert only(seen(arrivals, waiting)).kind == "uneven"
    assert judge(seen(arrivals, waiting, run_delay_seconds=2.0)) == []


def test_steps_that_take_longer_and_longer_are_named_with_their_line():
    growth = place(30, "total = sum(losses)")

    def history(seconds, cpu):
        return [StepsSeen(step, cpu * step, {LOOP: 0.1, growth: step - 0.1}) for step in seconds]

    found = alike(BALANCED)
    longer = [0.18, 0.20, 0.22, 0.25, 0.29, 0.31]
    found.history = history(longer, 0.8)
    cause = only(found)
    assert (cause.kind, cause.place) == ("growing", growth)
    assert cause.message.startswith("A step takes 300 ms, and took 190 ms at first, at line 30")
    for steady in (
        [0.2] * 6,
        [0.2, 0.2, 0.2, 0.2, 0.3, 0.3],
        [0.18, 0.2, 0.4, 0.41, 0.2, 0.21],
        longer[::-1],
        longer[:3],
    ):
        found.history = history(steady, 0.8)
        assert judge(found) == []
    found.history = history(longer, 0.1)
    assert judge(found) == []
    quick = [0.18, 0.21, 0.25, 0.31]  # few looks: each of them must show longer steps
    found.history = history(quick, 0.8)
    assert only(found).place == growth
    for steady in (quick[:3], [0.18, 0.25, 0.25, 0.31], [0.18, 0.18, 0.27, 0.28]):
        found.history = history(steady, 0.8)
        assert judge(found) == []
    few = [(0.0153, 0.002, 0.0011), (0.024, 0.0072, 0.0014), (0.0296, 0.0099, 0.0063), (0.0318, 0.012, 0.0065)]
    # Measured, 54 samples a look: both lines take more by now, and it is not sure which one grows.
    found.history = [StepsSeen(step, 0.2 * step, {growth: a, LOOP: b}, 54) for step, a, b in few]
    assert judge(found) == []
    found.history = [StepsSeen(step, 0.2 * step, {growth: a, LOOP: b}, 540) for step, a, b in few]
    assert judge(found) == [] or only(found).place == growth
    for several in (quick, longer):  # a machine that gets busy: all lines take longer
        found.history = [StepsSeen(step, step, {LOOP: 0.6 * step, growth: 0.4 * step}) for step in several]
        assert judge(found) == []
