"""Causes on devices, on made-up reports: what NVML, torch's allocator and its recorder of NCCL would have counted."""

from __future__ import annotations

from jupyter_dist.parts.slow.agent.asking.reports import RankReport
from jupyter_dist.parts.slow.agent.judge import judge
from jupyter_dist.parts.slow.agent.observed import observe
from jupyter_dist.parts.slow.agent.summary import PaceTotals

from .reports import LOOP, SLOW, place, samples, seen, steps

ITEM = place(18, "total += loss.item()")


def looks(fields, sampled=None, num_looks=5):
    """What is observed of two ranks; `fields(look)` are those of a report."""
    reports = {}
    for rank, arrivals in steps(2, 10 * num_looks, 0.1).items():
        parts = [tuple(arrivals[10 * look : 10 * look + 10]) for look in range(num_looks)]
        reports[rank] = [
            RankReport(2.0, 0, sampled or samples(run=20), part, **fields(look)) for look, part in enumerate(parts)
        ]
    return observe(reports, {})


def on_devices(took, num_steps=60, seconds=0.1):
    """Arrivals of two ranks whose hosts ask for all collectives at once; `took` are milliseconds on each device."""
    return {
        rank: [one._replace(on_device=True, took=None if took[rank] is None else 1000 * took[rank]) for one in arrivals]
        for rank, arrivals in steps(2, num_steps, seconds).items()
    }


def test_a_device_that_idles_while_ranks_wait_for_a_value_is_named_with_the_line():
    waiting = samples(run=(10, ITEM), backward=10)
    (cause,) = judge(looks(lambda _: {"device_busy": 0.35}, waiting))
    assert (cause.kind, cause.place, str(cause.ranks)) == ("device_sync", ITEM, "0-1")
    assert cause.message.startswith("Devices are idle 65 % of the time: ranks wait for values, at line 18")
    assert judge(looks(lambda _: {"device_busy": 0.9}, waiting)) == []
    assert judge(looks(lambda _: {}, waiting)) == []  # on CPU, and where NVML is not there
    assert judge(looks(lambda _: {"device_busy": 0.35}, samples(run=10, backward=10))) == []


def test_a_cache_of_device_memory_that_is_freed_at_each_look_is_named():
    def retrying(counts):
        return looks(
            lambda look: {"num_retries": counts[look], "memory_bytes": 50 << 30, "reserved_bytes": 70 << 30}, None
        )

    (cause,) = judge(retrying([3, 5, 8, 11, 20]))
    assert (cause.kind, str(cause.ranks)) == ("fragmentation", "0-1")
    assert "15 times" in cause.message
    assert "are cached beside" in cause.evidence[1]
    for steady in ([3] * 5, [0, 0, 0, 0, 9], [None] * 5):
        assert judge(retrying(steady)) == []


def test_durations_of_nccl_name_the_rank_that_waits_for_no_other_one():
    late = {0: samples(run=(40, LOOP), backward=60), 1: samples(run=(60, SLOW), backward=40)}
    (cause,) = judge(seen(on_devices({0: 45, 1: 3}), late))
    assert (cause.kind, str(cause.ranks), cause.place) == ("straggler", "1", SLOW)
    assert "42 ms of 100 ms a step" in cause.message
    assert judge(seen(on_devices({0: 45, 1: 44}), late)) == []


def test_without_durations_waits_on_devices_are_unknown_and_nothing_is_named():
    arrivals = steps(2, 60, 0.1, lambda _, rank: 0.06 * (rank == 1))
    hosts = {rank: [one._replace(on_device=True) for one in its] for rank, its in arrivals.items()}
    waiting = {0: samples(wait=60, backward=40), 1: samples(run=(60, SLOW), backward=40)}
    assert [cause.kind for cause in judge(seen(arrivals, waiting))] == ["straggler"]
    found = seen(hosts, waiting)
    assert judge(found) == []
    totals = PaceTotals()
    totals.add({rank: its.reports[0] for rank, its in found.ranks.items()}, found, 1.0)
    model = totals.model("e", [])
    assert "timing of collectives is on" in model["unknown"][0]
    assert [row["wait"] for row in model["ranks"]] == [0, 0]


def test_what_ranks_wait_on_devices_is_in_the_table():
    found = seen(on_devices({0: 45, 1: 5}), dict.fromkeys(range(2), samples(backward=100)), reserved_bytes=1)
    totals = PaceTotals()
    totals.add({rank: its.reports[0] for rank, its in found.ranks.items()}, found, 1.0)
    model = totals.model("e", [])
    first, second = model["ranks"]
    assert (first["wait"], first["communicate"], first["waits_for"]) == (0.4, 0.05, 1)
    assert (second["wait"], second["communicate"]) == (0, 0.05)
    assert model["unknown"] == ["How busy the devices are is not known: ranks do not have the library that counts it."]
