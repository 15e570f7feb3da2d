"""Ranks that the others wait for, on made-up reports: who is named, with which line, and who is not."""

from __future__ import annotations

import random
from dataclasses import replace

from jupyter_dist.parts.slow.agent.asking.clocks import Clocks
from jupyter_dist.parts.slow.agent.asking.reports import Arrival, read_report
from jupyter_dist.parts.slow.agent.judge import ShownCauses, judge
from jupyter_dist.parts.slow.agent.observed import observe
from jupyter_dist.parts.slow.agent.rules.stragglers import find_straggler

from .reports import LOOP, SLOW, place, samples, seen, steps

WAITING = samples(wait=40, backward=60)
LATE = samples(run=(42, SLOW), backward=58)


def late(rank, seconds):
    return lambda step, one: seconds if one == rank else 0.0


def of_four(late_rank):
    return {rank: LATE if rank == late_rank else WAITING for rank in range(4)}


def test_a_rank_that_is_late_to_each_step_is_named_with_its_line():
    (cause,) = judge(seen(steps(4, 60, 0.1, late(2, 0.06)), of_four(2)))
    assert (cause.kind, str(cause.ranks), cause.place) == ("straggler", "2", SLOW)
    at = "at line 12 of cell [7]: tokens = tokenise(batch)."
    assert cause.message == f"The others wait 60 ms of 160 ms a step for rank 2, {at}"
    assert "60 of 60 collectives" in cause.evidence[0]


def test_a_rank_that_is_late_now_and_then_and_long_is_named_otherwise():
    (cause,) = judge(seen(steps(4, 60, 0.1, lambda step, rank: 1.5 * (rank == 0 and step % 12 == 5)), of_four(0)))
    assert (cause.kind, str(cause.ranks)) == ("occasional", "0")
    assert cause.message.startswith("The others wait 5")
    assert "for rank 0 now and then, at line 12 of cell [7]" in cause.message


def test_a_rank_that_is_late_now_and_then_is_named_also_where_all_wait_for_each_other_a_little():
    chance = random.Random(2)
    jitter = {(step, rank): chance.random() * 0.01 for step in range(60) for rank in range(4)}

    def late_to_some(every, seconds):
        return lambda step, rank: jitter[step, rank] + seconds * (rank == 0 and step % every == every - 1)

    (cause,) = judge(seen(steps(4, 60, 0.01, late_to_some(10, 0.07)), of_four(0)))
    assert (cause.kind, str(cause.ranks), cause.place) == ("occasional", "0", SLOW)
    assert "5 of 60 collectives" in cause.evidence[0]
    assert judge(seen(steps(4, 60, 0.01, late_to_some(20, 0.14)), of_four(0))) == []  # twice
    by_chance = steps(4, 60, 0.01, lambda step, rank: jitter[step, rank] + 0.07 * (step % 10 == 9 and rank == step % 4))
    assert judge(seen(by_chance, of_four(0))) == []
    assert judge(seen(steps(4, 60, 0.01, late_to_some(10, 0.07)), dict.fromkeys(range(4), WAITING))) == []


def test_two_of_four_ranks_that_are_late_together_are_named_together():
    both = {rank: LATE if rank in (1, 3) else WAITING for rank in range(4)}
    (cause,) = judge(seen(steps(4, 60, 0.1, lambda step, rank: 0.06 * (rank in (1, 3))), both))
    assert str(cause.ranks) == "1,3"
    assert "for ranks 1,3" in cause.message


def test_nobody_is_named_where_the_last_rank_differs_or_the_wait_is_short_or_happened_once():
    chance = random.Random(1)
    jitter = {(step, rank): chance.random() * 0.1 for step in range(60) for rank in range(4)}
    innocent = [
        steps(4, 60, 0.1),
        steps(4, 60, 0.1, lambda step, rank: jitter[step, rank]),
        steps(4, 60, 0.1, lambda step, rank: 0.08 * (rank == step % 4)),
        steps(4, 60, 0.1, late(2, 0.008)),
        steps(4, 60, 0.1, lambda step, rank: 6.0 * (rank == 2 and step == 30)),
        steps(4, 4, 0.1, late(2, 1.0)),
    ]
    for arrivals in innocent:
        assert find_straggler(seen(arrivals, of_four(2))) is None


def test_arrivals_without_samples_that_agree_name_nobody():
    arrivals = steps(4, 60, 0.1, late(2, 0.06))
    assert judge(seen(arrivals, dict.fromkeys(range(4), WAITING))) == []
    assert judge(seen(arrivals, dict.fromkeys(range(4), ()))) == []


def test_a_rank_that_gets_no_core_is_not_blamed_for_its_code():
    delays = {rank: 4.0 if rank == 2 else 0.1 for rank in range(4)}
    (cause,) = judge(seen(steps(4, 60, 0.1, late(2, 0.06)), of_four(2), run_delay_seconds=delays))
    assert (cause.kind, str(cause.ranks), cause.place) == ("contention", "2", None)
    works = {rank: 3.0 if rank == 2 else 1.0 for rank in range(4)}
    busy = seen(steps(4, 60, 0.1, late(2, 0.06)), of_four(2), run_delay_seconds=delays, cpu_seconds=works)
    assert [cause.kind for cause in judge(busy)] == ["straggler"]


def test_a_rank_whose_waits_for_a_core_are_as_long_as_the_others_wait_is_not_blamed_for_its_code():
    """Seen on a busy machine: three times as long as the others' waits for a core, and a tenth of the time in all."""
    mine, others = samples(run=(80, SLOW), backward=20), samples(run=(50, SLOW), backward=25, wait=25)
    sampled = {rank: mine if rank == 2 else others for rank in range(4)}

    def judged(delay):
        delays = {rank: delay if rank == 2 else 0.4 for rank in range(4)}
        return judge(seen(steps(4, 60, 0.1, late(2, 0.015)), sampled, run_delay_seconds=delays, cpu_seconds=1.0))

    assert [cause.kind for cause in judged(0.5)] == ["straggler"]
    assert "straggler" not in [cause.kind for cause in judged(1.19)]


def test_ranks_that_do_the_same_on_a_busy_machine_are_not_told_apart():
    """Lists made in each step, at a load of six: the cores are another rank's for seconds, and memory is slower on one."""
    mine, others = samples(run=(80, SLOW), backward=20), samples(run=(55, SLOW), backward=20, wait=25)
    alike = {rank: mine if rank == 2 else others for rank in range(4)}

    def judged(sampled, delay, seconds=0.025):
        fields = {"run_delay_seconds": delay, "cpu_seconds": 3.0}
        return [cause.kind for cause in judge(seen(steps(4, 60, 0.1, late(2, seconds)), sampled, **fields))]

    assert judged(alike, 0.4) == ["straggler"]
    assert judged(alike, 1.2) == []
    # But one that does more than half as much again is named, and one that is alone at a line.
    assert judged(alike, 1.2, 0.08) == ["straggler"]
    assert judged(of_four(2), 1.2) == ["straggler"]


def test_the_slowest_of_ranks_that_wait_for_queues_of_their_own_only_sets_the_pace():
    """Seen with a thread in each rank that fills a queue: a hundredth slower, and the queues of the others are full."""
    mine, others = samples(run=(60, SLOW), backward=40), samples(run=(58, SLOW), backward=25, wait=17)
    sampled = {rank: mine if rank == 2 else others for rank in range(4)}
    paced = steps(4, 60, 0.05, late(2, 0.011))
    assert "straggler" not in [cause.kind for cause in judge(seen(paced, sampled, cpu_seconds=0.2))]
    works = {rank: 2.0 if rank == 2 else 0.2 for rank in range(4)}
    assert [cause.kind for cause in judge(seen(paced, sampled, cpu_seconds=works))] == ["straggler"]


def test_lines_of_a_loop_that_share_the_time_are_named_by_the_longest():
    loop = {f"run{number}": (part, place(number, "n += k")) for number, part in ((4, 14), (5, 12), (6, 16))}
    mine = tuple(one._replace(activity="run") for one in samples(**loop)) + samples(backward=58)
    (cause,) = judge(
        seen(steps(4, 60, 0.1, late(2, 0.06)), {rank: mine if rank == 2 else WAITING for rank in range(4)})
    )
    assert (str(cause.ranks), cause.place) == ("2", place(6, "n += k"))


def test_less_time_without_a_core_is_enough_if_the_others_wait_for_the_rank():
    delays = {rank: 1.6 if rank == 2 else 0.1 for rank in range(4)}
    alike = dict.fromkeys(range(4), WAITING)
    (cause,) = judge(seen(steps(4, 60, 0.1, late(2, 0.04)), alike, run_delay_seconds=delays))
    assert (cause.kind, str(cause.ranks)) == ("contention", "2")
    assert judge(seen(steps(4, 60, 0.1), alike, run_delay_seconds=delays)) == []
    assert judge(seen(steps(4, 60, 0.1, late(1, 0.04)), alike, run_delay_seconds=delays)) == []


def test_a_late_rank_that_is_found_in_collectives_too_is_named_by_the_line_at_which_it_is_alone():
    """A save now and then: in all other steps the rank is in the collective as long as the others are."""
    arrivals = steps(4, 60, 0.1, lambda step, rank: 0.6 * (rank == 0 and step % 12 == 5))
    saving, waiting = samples(wait=30, save=(30, SLOW), run=40), samples(wait=35, run=65)
    (cause,) = judge(seen(arrivals, {rank: saving if rank == 0 else waiting for rank in range(4)}))
    assert (cause.kind, str(cause.ranks), cause.place) == ("occasional", "0", SLOW)
    busy = samples(wait=10, run=90)  # its collectives are asynchronous: the others go on
    assert judge(seen(arrivals, {rank: saving if rank == 0 else busy for rank in range(4)})) == []


def test_a_line_at_which_few_samples_differ_by_chance_is_not_named():
    sleeping = place(4, "time.sleep(0.01)")
    arrivals = steps(4, 60, 0.1, late(2, 0.04))
    few = {rank: samples(wait=7 if rank == 2 else 12, run=(15 if rank == 2 else 13, sleeping)) for rank in range(4)}
    (cause,) = judge(seen(arrivals, few))
    assert (cause.kind, str(cause.ranks), cause.place) == ("straggler", "2", None)
    many = {
        rank: samples(wait=70 if rank == 2 else 120, run=(150 if rank == 2 else 130, sleeping)) for rank in range(4)
    }
    assert judge(seen(arrivals, many))[0].place == sleeping


def test_the_last_rank_of_a_gather_is_not_blamed_where_the_other_senders_go_on():
    """Rank 1 is ahead of rank 2, and seems to wait for it; it is found in its own work."""
    arrivals = steps(3, 60, 0.1, late(2, 0.06), name="gather")
    working = {0: samples(wait=90, run=10), 1: samples(wait=3, run=(97, SLOW)), 2: LATE}
    assert judge(seen(arrivals, working)) == []
    assert [cause.kind for cause in judge(seen(arrivals, {**working, 1: WAITING}))] == ["straggler"]


def test_a_rank_that_has_more_to_do_on_a_busy_machine_is_blamed_for_its_code_and_not_for_its_lack_of_cores():
    """Every rank waits twice as long for a core as it computes."""
    works = {rank: 1.2 if rank == 2 else 0.5 for rank in range(4)}
    delays = {rank: 2 * seconds for rank, seconds in works.items()}
    (cause,) = judge(seen(steps(4, 60, 0.1, late(2, 0.06)), of_four(2), run_delay_seconds=delays, cpu_seconds=works))
    assert (cause.kind, str(cause.ranks), cause.place) == ("straggler", "2", SLOW)


def test_a_rank_that_only_waits_for_another_group_is_not_blamed():
    """Rank 3 is late; rank 2 meets it in a pair, and comes late to rank 0 for it."""
    pair = steps(2, 60, 0.1, late(1, 0.06), group="pair")
    arrivals = {rank: [] for rank in range(3)}
    for one, two in zip(pair[0], pair[1], strict=True):
        met = two.began + 1000
        arrivals[1] += [one, Arrival("all", "all_reduce", 4, one.seq, met, None)]
        arrivals[2] += [two, Arrival("all", "all_reduce", 4, one.seq, met, None)]
        arrivals[0].append(Arrival("all", "all_reduce", 4, one.seq, one.began, None))
    (cause,) = judge(seen(arrivals, {0: WAITING, 1: WAITING, 2: LATE}))
    assert str(cause.ranks) == "2"


def test_clocks_of_hosts_are_known_by_questions_and_what_is_unsure_counts_for_nobody():
    clocks = Clocks()
    clocks.note("b", asked=1_000, answered=9_000, now=5_003_000)
    clocks.note("b", asked=20_000, answered=20_400, now=5_020_100)
    shift, unsure = clocks.shift("b")
    assert abs(shift - 5_000_000) <= unsure <= 210
    arrivals = steps(2, 60, 0.1, late(1, 0.06))
    arrivals[1] = [one._replace(began=one.began + 5_000_000) for one in arrivals[1]]
    (cause,) = judge(seen(arrivals, {0: WAITING, 1: LATE}, {1: shift}, unsure))
    assert str(cause.ranks) == "1"
    assert judge(seen(arrivals, {0: WAITING, 1: LATE}, {1: shift}, unsure=60_000)) == []


def test_collectives_that_a_rank_has_not_reported_are_no_wait():
    """The recorder keeps a few hundred collectives: between two reports there may be a gap."""
    arrivals = steps(2, 100, 0.1, late(1, 0.06))
    gap = {rank: [one for one in its if not 20 < one.seq < 80] for rank, its in arrivals.items()}
    whole, cut = (seen(one, {0: WAITING, 1: LATE}) for one in (arrivals, gap))
    assert abs(whole.waits.share(0) - cut.waits.share(0)) < 0.05


def test_a_cause_is_shown_when_two_looks_find_it_and_goes_when_two_miss_it():
    (cause,) = judge(seen(steps(4, 60, 0.1, late(2, 0.06)), of_four(2)))
    shown = ShownCauses()
    assert [bool(shown.after(found)) for found in ([cause], [], [cause], [cause], [], [cause], [], [])] == [
        *(False, False, False, True, True, True, True, False),
    ]


def test_a_cause_that_several_looks_have_found_together_is_shown_at_once():
    (cause,) = judge(seen(steps(4, 60, 0.1, late(2, 0.06)), of_four(2)))
    shown = ShownCauses()
    assert shown.after([replace(cause, spans_looks=True)])


def test_what_a_rank_sends_is_checked():
    answer = {
        "seconds": 2.0,
        "now": 5,
        "samples": [["run", 3, 2000, [LOOP.file, 3, "<module>", "x"], None, False]],
        "arrivals": [["0", "all_reduce", 4, 1, 99, None, False]],
        "device": [None, None],
        "collections": [0, 0.0],
        "compiles": 0,
        "cpu_seconds": 1.0,
        "run_delay_seconds": 0.0,
        "stopped_seconds": 0.0,
        "memory": {"resident_bytes": 1, "allocated_bytes": None},
        "grown": [],
        "updates": [["0", 4, 1]],
        "steps": [],
    }
    report = read_report(answer)
    assert report is not None
    assert report.samples[0].place == LOOP._replace(code="x")
    for name, value in (
        ("seconds", "nan"),
        ("samples", [[]]),
        ("arrivals", [["0"] * 6]),
        ("memory", None),
        ("updates", [["0"]]),
    ):
        assert read_report({**answer, name: value}) is None
    assert observe({}, {}).step_seconds is None


def test_a_rank_that_is_late_in_a_process_group_of_its_own_is_named():
    arrivals = steps(2, 60, 0.1, group="1")
    other = steps(2, 60, 0.1, late(1, 0.06), group="2")
    arrivals |= {2 + rank: its for rank, its in other.items()}
    (cause,) = judge(seen(arrivals, {**dict.fromkeys(range(3), WAITING), 3: LATE}))
    assert (cause.kind, str(cause.ranks), cause.place) == ("straggler", "3", SLOW)
    assert "60 ms of 160 ms a step" in cause.message


def test_a_rank_for_whose_messages_the_others_wait_is_named():
    """Of send and recv no arrivals are known."""
    busy, others = samples(wait=8, run=(92, SLOW)), samples(wait=85, run=15)
    none = {rank: [] for rank in range(4)}
    (cause,) = judge(seen(none, {**dict.fromkeys(range(4), others), 2: busy}))
    assert (cause.kind, str(cause.ranks), cause.place) == ("straggler", "2", SLOW)
    # All others wait once for something that takes long; a server of parameters waits for its workers.
    assert judge(seen(none, {**dict.fromkeys(range(4), samples(wait=100)), 2: busy})) == []
    assert judge(seen(none, {**dict.fromkeys(range(4), busy), 2: others})) == []
