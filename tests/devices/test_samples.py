"""The ring of samples: an hour, bounded, as rows and as columns."""

import math

import pytest

from jupyter_dist.server.devices import samples
from jupyter_dist.server.devices.samples import DeviceReadings, MemorySamples


def sample(at, resident, allocated=None, **more):
    device = dict.fromkeys(("reserved_bytes", "peak_bytes", "device_used_bytes"))
    ranks = [
        {"rank": rank, "resident_bytes": value, "allocated_bytes": allocated, "cpu_percent": 1.5, **device}
        for rank, value in enumerate(resident)
    ]
    return {"at": at, "ranks": ranks, **more}


def filled(seconds, num_ranks=2, max_numbers=samples.MAX_NUMBERS):
    ring = MemorySamples(max_numbers)
    for at in range(1, seconds + 1):
        ring.add(sample(float(at), [at * 10 + rank for rank in range(num_ranks)]))
    return ring


def test_samples_are_followed_by_their_number_whatever_their_time():
    ring = filled(40, max_numbers=200)
    seen = ring.num_added
    ring.add(sample(5.0, [1, 2]))
    ring.add(sample(4.0, [3, 4]))
    assert ring.added_after(seen) == [sample(5.0, [1, 2]), sample(4.0, [3, 4])]
    assert ring.added_after(ring.num_added) == []


def test_samples_come_back_as_they_were():
    ring = MemorySamples()
    first, second = sample(1.0, [10, 20]), sample(2.0, [11, 2**52 + 1], allocated=7)
    ring.add(first)
    ring.add(second)
    assert ring.after(0) == [first, second]
    assert ring.after(1.0) == [second]
    assert ring.latest() == second
    assert MemorySamples().latest() is None


def test_an_hour_is_kept_and_read_page_by_page():
    ring = filled(4000)
    times, since, more = [], 0.0, True
    while more:
        page = ring.page(since, 600)
        assert len(page["times"]) <= 600
        assert [rank["rank"] for rank in page["ranks"]] == [0, 1]
        assert page["ranks"][1]["resident_bytes"] == [at * 10 + 1 for at in page["times"]]
        assert page["ranks"][0]["allocated_bytes"] is None
        times += page["times"]
        since, more = page["times"][-1], page["more"]
    assert times == [float(at) for at in range(400, 4001)]
    assert ring.page(4000.0, 600)["times"] == []


def test_a_page_of_many_ranks_has_few_samples(monkeypatch):
    monkeypatch.setattr(samples, "PAGE_NUMBERS", 100)
    page = filled(20, num_ranks=10).page(0, 600)
    assert len(page["times"]) == 5  # of two numbers for each of ten ranks
    assert page["more"]


def test_older_samples_of_many_ranks_are_merged_and_the_highest_is_kept():
    ring = MemorySamples(max_numbers=4 * 100)
    for at in range(1, 1001):
        ring.add(sample(float(at), [1000 if at == 130 else at % 7, 5]))
    page = ring.page(0, 1200)
    times = page["times"]
    assert len(times) <= 100
    assert times[0] < 400  # not only the newest ones
    assert times[-10:] == [float(at) for at in range(991, 1001)]  # which are whole
    assert times == sorted(times)
    kept = [value for at, value in zip(times, page["ranks"][0]["resident_bytes"], strict=True) if at < 400]
    assert max(kept) == 1000


def test_samples_that_cannot_be_merged_are_bounded_too():
    ring = MemorySamples(max_numbers=100)
    for at in range(1000):
        ring.add(sample(float(at), [1] * (1 + at % 3)))
    assert sum(2 * len(found["ranks"]) for found in ring.after(-1)) <= 100


def test_a_time_in_which_nobody_looked_is_a_gap_and_stays_one():
    ring = MemorySamples(max_numbers=60)
    ring.add(sample(1.0, [1]))
    ring.add(sample(100.0, [1]))
    for at in range(101, 200):
        ring.add(sample(float(at), [1]))
    page = ring.page(0, 600)
    assert page["gaps"] == [{"begin": 1.0, "end": 100.0}]
    assert ring.page(150.0, 600)["gaps"] == []
    assert not any(1.0 < at < 100.0 for at in page["times"])


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_number_that_is_none_is_null_and_fails_no_page(value):
    ring = MemorySamples()
    ring.add(sample(1.0, [5], allocated=value))
    assert ring.latest() == sample(1.0, [5], allocated=None)


def test_a_rank_that_was_not_there_has_null():
    ring = MemorySamples()
    ring.add(sample(1.0, [1, 2]))
    ring.add(sample(2.0, [3]))
    assert ring.page(0, 10)["ranks"][1]["resident_bytes"] == [2, None]


def test_what_was_seen_comes_with_its_own_time():
    seen = [{"ranks": "0", "execution_id": "e", "place": "line 2 of cell [1]", "call": "all_reduce, number 1"}]
    ring = MemorySamples()
    ring.add(sample(1.0, [1]))
    ring.add(sample(2.0, [1], seen_at=1.5, seen=seen))
    assert ring.page(0, 10)["seen"] == [{"at": 1.5, "seen": seen}]
    assert ring.after(1.0)[0]["seen"] == seen


def test_readings_of_devices_belong_to_the_pages_of_their_time():
    readings = DeviceReadings()
    readings.add(1.0, [])
    for at in (2.0, 5.0, 8.0):
        device = {"accelerator": "cuda", "index": 0, "utilization_percent": at, "power_watts": None, "name": "X"}
        readings.add(at, [device])
    ring = filled(4)
    found = readings.between(ring.page(0, 600))
    assert found == [
        {
            "accelerator": "cuda",
            "index": 0,
            "times": [2.0, 5.0, 8.0],
            "utilization_percent": [2.0, 5.0, 8.0],
            "power_watts": [None] * 3,
        }
    ]
    assert readings.between(ring.page(0, 2))[0]["times"] == [2.0]
    assert readings.between(ring.page(9, 2)) == []


@pytest.mark.parametrize("value", [0, 1, 2**40 + 1])
def test_bytes_are_whole_numbers(value):
    ring = MemorySamples()
    ring.add(sample(1.0, [value]))
    shown = ring.page(0, 1)["ranks"][0]["resident_bytes"][0]
    assert shown == value
    assert isinstance(shown, int)
    assert not math.isnan(shown)
