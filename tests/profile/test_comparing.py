"""The comparison of what ranks did: who came last, how long the others waited, and what is shown of it."""

import json

import pytest

from jupyter_dist.parts.profile.comparing import compare, profile_output, read_summary, shown
from jupyter_dist.parts.profile.models import MAX_COLLECTIVES
from jupyter_dist.server.folding.content import DamagedContentError


def told(*collectives, began=1e12, seconds=2.0, computing=0.1, host="a", **fields):
    """A rank's summary; its collectives as (name, begin, end) in seconds of the cell, in which it computes nothing."""
    return read_summary(sent(*collectives, began=began, seconds=seconds, computing=computing, host=host, **fields))


def sent(*collectives, began=1e12, seconds=2.0, computing=0.1, host="a", **fields):
    rows = [[name, "", begin * 1e6, end * 1e6, (end - begin) * 1e6] for name, begin, end in collectives]
    summary = {
        "host": host,
        "began": began,
        "seconds": seconds,
        "computing": computing,
        "in_collectives": sum(end - begin for _, begin, end in collectives),
        "collectives": rows,
        "num_collectives": len(rows),
        "num_events": 10,
        "num_cut": 0,
    }
    return json.dumps({**summary, **fields}).encode()


def test_who_comes_last_is_who_the_others_wait_for():
    found = compare(
        "e-1",
        {
            0: told(("gloo:all_reduce", 0.1, 1.1), ("gloo:broadcast", 1.2, 1.3)),
            1: told(("gloo:all_reduce", 1.0, 1.1), ("gloo:broadcast", 1.2, 1.3)),
            2: told(("gloo:all_reduce", 0.2, 1.1), ("gloo:broadcast", 1.2, 1.3)),
        },
        [0, 1, 2],
    )
    assert found["stragglers"] == "1"
    first, late, _ = found["ranks"]
    assert (first["waits_for"][0]["rank"], round(first["waiting"], 3)) == (1, 0.9)
    assert round(first["communicating"], 3) == 0.2
    assert late["waiting"] == 0
    assert round(late["kept_waiting"], 3) == 0.85
    for row in found["ranks"]:
        parts = row["computing"] + row["communicating"] + row["waiting"] + row["other"]
        assert parts == pytest.approx(row["seconds"])
    assert found["sentences"] == [
        "Rank 1 was the last at 1 of 2 collectives: the others waited 850 ms for it on average, "
        "the longest time in all_reduce, number 1 of the cell (900 ms)."
    ]


def test_ranks_that_come_together_are_no_stragglers():
    found = compare("e-1", {rank: told(("gloo:all_reduce", 0.1, 0.2)) for rank in (0, 1)}, [0, 1])
    assert (found["stragglers"], found["sentences"]) == ("", ["No rank kept the others waiting."])


def test_what_does_not_match_is_not_compared():
    found = compare("e-1", {0: told(("gloo:all_reduce", 0, 1)), 1: told(("gloo:broadcast", 0.9, 1))}, [0, 1])
    assert found["collectives"] == 0
    found = compare("e-1", {0: told(("gloo:send", 0, 1)), 1: told(("gloo:recv", 0.9, 1))}, [0, 1])
    assert found["collectives"] == 0


def test_process_groups_are_counted_apart():
    def of(group, begin):
        summary = told(("gloo:all_reduce", begin, 1.0))
        (only,) = summary.collectives
        summary.collectives[0] = type(only)(only.name, group, only.begin, only.end, only.exposed)
        return summary

    found = compare("e-1", {0: of("1", 0.0), 1: of("1", 0.8), 2: of("2", 0.1), 3: of("2", 0.2)}, range(4))
    waits = {row["rank"]: [waited["rank"] for waited in row["waits_for"]] for row in found["ranks"]}
    assert waits == {0: [1], 1: [], 2: [3], 3: []}


def test_clocks_of_machines_are_aligned_by_the_ends_of_collectives():
    late = told(("gloo:all_reduce", 0.9, 1.0), began=1e12 + 50e6, host="b")
    found = compare("e-1", {0: told(("gloo:all_reduce", 0.1, 1.0)), 1: late}, [0, 1])
    assert [row["shift_seconds"] for row in found["ranks"]] == [0, -50]
    assert found["ranks"][0]["waiting"] == pytest.approx(0.8)
    assert "aligned" in found["sentences"][-1]


def test_ranks_without_a_profile_and_cut_traces_are_named():
    found = compare("e-1", {0: told(num_events=900, num_cut=100)}, [0, 1])
    assert found["sentences"] == [
        "There is no profile of rank 1.",
        "The trace of rank 0 has its 800 longest events only.",
    ]


def test_the_table_is_text_and_html_without_tags_of_others():
    summaries = {
        0: told(("gloo:<b>", 0.0, 1.0)),
        1: told(("gloo:<b>", 0.9, 1.0)),
    }
    data = shown(compare("e-1", summaries, [0, 1]))["data"]
    assert "<b>" not in data["text/html"]
    head, first, second, sentence = data["text/plain"].splitlines()
    assert head.split()[:3] == ["rank", "cell", "computing"]
    assert "rank 1 (900 ms)" in first
    assert second.split()[-1] == "ms"
    assert sentence.startswith("Rank 1 was the last")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b"{}",
        b'{"began": "x"}',
        json.dumps({"host": "a", "began": 0, "seconds": -1, "computing": 0, "in_collectives": 0}).encode(),
        b" " * (2 << 20),
        b"[" * 100_000,
    ],
)
def test_what_is_no_summary_is_skipped(payload):
    with pytest.raises(DamagedContentError):
        read_summary(payload)
    assert profile_output("e-1", {0: payload}, [0]) is None
    output = profile_output("e-1", {0: payload, 1: sent()}, [0, 1])
    assert "There is no profile of rank 0." in output["data"]["text/plain"]


def test_no_more_collectives_are_compared_than_the_limit():
    many = [("gloo:all_reduce", number, number + 1) for number in range(MAX_COLLECTIVES + 5)]
    found = compare("e-1", {rank: told(*many) for rank in (0, 1)}, [0, 1])
    assert found["collectives"] == MAX_COLLECTIVES
    assert f"Only the first {MAX_COLLECTIVES}" in found["sentences"][-1]
