"""The rules of verdicts, on made-up looks: what real ranks on CPU cannot show, or show only after a long time."""

from __future__ import annotations

import re
from pathlib import Path

from jupyter_dist.agent.nodes import paths
from jupyter_dist.agent.watch.facts import BegunCollective, Fact, WaitedCall
from jupyter_dist.parts.hangs.agent.stillness import Stillness
from jupyter_dist.parts.hangs.agent.verdict import STILL_SECONDS, judge

from .kinds import HANGS, INNOCENT

DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "find-a-hang.md"
ALL = frozenset(range(4))
PAIR = frozenset((0, 1))


def waits(rank, name="all_reduce", seq=1, at=1, members=ALL, **more):
    call = {name: more.pop(name) for name in list(more) if name in WaitedCall.__dataclass_fields__}
    more.setdefault("counts", {"0": seq})
    call = WaitedCall(name, "default", members, seq=seq, key="0", operation=name.removeprefix("wait() of "), **call)
    return Fact(rank, "waits", call, f"line {rank} of cell [5]", execution_id="e", at=at, **more)


def idle(rank, count=0, **more):
    more.setdefault("counts", {"0": count})
    return Fact(rank, "idle", place="since cell [4]", **more)


def verdict_of(*now, before=(), **more):
    now = {fact.rank: fact for fact in now}
    return judge({**now, **{fact.rank: fact for fact in before}}, now, **more).get("e")


def test_a_rank_whose_frames_move_does_not_wait_whatever_the_processor_says():
    now = [waits(0), *map(idle, (1, 2, 3))]
    for cpu_counts in (True, False):
        assert verdict_of(*now, cpu_counts=cpu_counts)["reason"] == "missing"
        assert verdict_of(*now, before=[waits(0, at=2)], cpu_counts=cpu_counts) is None


def test_a_rank_that_waits_for_a_device_uses_the_processor():
    now, before = [waits(0, cpu_seconds=2.0), *map(idle, (1, 2, 3))], [waits(0, cpu_seconds=1.0)]
    assert verdict_of(*now, before=before, cpu_counts=False)["kind"] == "cannot_end"
    assert verdict_of(*now, before=before)["kind"] == "waits"


def test_ranks_at_another_number_of_the_same_call_do_not_meet():
    skipped = {("0", 1): BegunCollective("barrier", "")}
    begun = {("0", 1): BegunCollective("all_reduce", "float [4]"), ("0", 2): BegunCollective("barrier", "")}
    others = [waits(rank, "barrier", 2, records=begun) for rank in (0, 2, 3)]
    found = verdict_of(*others, waits(1, "barrier", 1, records=skipped))
    assert (found["kind"], found["reason"]) == ("cannot_end", "mismatch")
    assert "They differ since number 1: all_reduce, float [4] on ranks 0,2-3; barrier on rank 1." in found["message"]


def test_idle_ranks_that_have_called_it_are_not_missing():
    of_four, of_eight = ({("0", 1): BegunCollective("all_reduce", f"float [{size}]")} for size in (4, 8))
    now = [waits(0, shape="float [8]", records=of_eight), *(idle(rank, 1, records=of_four) for rank in (1, 2, 3))]
    found = verdict_of(*now)
    assert (found["kind"], found["reason"]) == ("cannot_end", "shapes")
    assert "float [8] on rank 0; float [4] on ranks 1-3" in found["message"]
    assert "idle" not in found["message"]


def test_idle_ranks_that_have_called_it_alike_may_be_waited_for():
    record = {("0", 1): BegunCollective("broadcast", "float [4]")}
    now = [waits(0, "broadcast", shape="float [4]", records=record), *(idle(n, 1, records=record) for n in (1, 2, 3))]
    assert verdict_of(*now) is None


def test_a_wait_meets_the_call_itself():
    now = [waits(0), waits(1, "wait() of all_reduce"), waits(2), Fact(3, "runs", place="line 1", counts={"0": 0})]
    assert verdict_of(*now)["reason"] == "busy"


def test_what_comes_by_itself_and_own_time_limits_are_named():
    found = verdict_of(waits(0), *(idle(rank, comes="a thread") for rank in (1, 2, 3)))
    assert found["kind"] == "waits"
    assert "rank 1 is idle since cell [4], and a thread may call it" in found["message"]
    found = verdict_of(waits(0, limit=90.0), *map(idle, (1, 2, 3)))
    assert found["kind"] == "waits"
    assert found["message"].endswith("Its own time limit of 1.5 min ends it.")


def test_a_wait_for_one_of_several_process_groups_is_not_judged():
    assert verdict_of(waits(0, is_clear=False), *map(idle, (1, 2, 3)))["kind"] == "waits"


def test_a_wait_for_one_of_several_collectives_cannot_end_if_none_of_them_can():
    """On a device, a rank waits for all that it has queued there: two communicators that hang have one wait."""
    pair = WaitedCall("wait() of all_reduce", "pair", PAIR, seq=2, key="1", operation="all_reduce")
    now = waits(0, is_clear=False, also=(pair,), counts={"0": 1, "1": 2})
    missing = [idle(1, counts={"0": 0, "1": 1}), idle(2), idle(3)]
    assert verdict_of(now, *missing)["kind"] == "cannot_end"
    called = [idle(1, counts={"0": 0, "1": 2}), idle(2), idle(3)]  # that of the pair is met, and may take long
    assert verdict_of(now, *called)["kind"] == "waits"
    runs = Fact(1, "runs", place="line 1", counts={"0": 0, "1": 1})  # it may call that of the pair
    assert verdict_of(now, runs, *missing[1:])["kind"] == "waits"


def test_numbers_count_where_torch_keeps_no_record():
    now = [waits(0, seq=7, counts={"0": 7}), *(idle(rank, 6) for rank in (1, 2, 3))]
    assert "(7 collectives against 6)" in verdict_of(*now)["message"]


def test_a_device_that_works_for_an_earlier_cell_is_named():
    found = verdict_of(waits(0, "wait() of all_reduce", seq=7, cell=3), *(idle(rank, 6) for rank in (1, 2, 3)))
    assert "wait() of all_reduce, number 7, of cell [3] at line 0" in found["message"]
    busy = Fact(1, "runs", place="line 2 of cell [5]", left_over="all_reduce, number 7, of cell [3] has not completed")
    message = verdict_of(waits(0, members=PAIR), busy)["message"]
    assert "rank 1 is at line 2 of cell [5]; all_reduce, number 7, of cell [3] has not completed" in message


def test_an_exception_that_ended_a_part_is_named():
    found = verdict_of(waits(0), idle(1, error="ValueError: no data"), idle(2), idle(3))
    assert found["message"].endswith("The last cell of rank 1 ended with ValueError: no data.")
    assert found["needed"][0]["place"] == "since cell [4], which ended with ValueError: no data"


def in_a_lock(rank, **more):
    return Fact(rank, "runs", place="line 2 of cell [5]: lock.acquire()", execution_id="e", **{"at": 1, **more})


def seconds_still(*looks, cpu_counts=True):
    stillness = Stillness()
    for number, facts in enumerate(looks):
        found = stillness.after({fact.rank: fact for fact in facts}, cpu_counts, number * 20.0)
    return found["e"]


def test_all_ranks_in_one_lock_are_named_after_a_while():
    look = [in_a_lock(0), in_a_lock(1)]
    assert seconds_still(look) == 0
    assert seconds_still(look, look, look) == 40.0
    assert seconds_still(look, look, [in_a_lock(0), in_a_lock(1, at=2)]) == 0
    assert seconds_still(look, look, [in_a_lock(0), in_a_lock(1, cpu_seconds=1.0)]) == 0
    assert seconds_still(*[[in_a_lock(0), in_a_lock(1, sleeps=True)]] * 3) == 0
    assert seconds_still(*[[in_a_lock(0), in_a_lock(1, comes="a thread")]] * 3) == 0
    found = verdict_of(*look, still={"e": 45.0})
    assert (found["kind"], found["reason"]) == ("waits", "still")
    told = "Nothing has moved for more than 30 s: ranks 0-1 are at line 2 of cell [5]: lock.acquire()."
    assert found["message"] == told
    assert verdict_of(*look, still={"e": STILL_SECONDS - 1}) is None


def test_a_hang_in_which_no_rank_is_missing_is_named_after_a_while():
    look = [waits(rank) for rank in range(4)]
    assert seconds_still(look, look) == 20.0
    assert verdict_of(*look) is None
    found = verdict_of(*look, still={"e": 12.0})
    assert (found["kind"], found["reason"]) == ("waits", "still")
    assert "Nothing has moved for more than 10 s, and no rank is missing" in found["message"]


def test_nodes_that_do_not_reach_each_other_are_in_the_verdict():
    look = [waits(rank) for rank in range(4)]
    found = verdict_of(*look, still={"e": 12.0}, paths="Node 0 cannot connect to node 1.")
    assert (found["kind"], found["reason"]) == ("waits", "cut")
    assert "no rank is missing. Node 0 cannot connect to node 1." in found["message"]
    assert "by new ones" in verdict_of(*look, still={"e": 12.0}, paths="")["message"]


def test_only_nodes_in_some_distances_are_tried_of_many():
    few, many = list(range(4)), list(range(100))
    assert [paths._tried(node, few) for node in few] == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
    assert paths._tried(99, many) == [0, 1, 3, 7, 15, 31, 63]
    broken = [paths.BrokenPath(0, node, "10.0.0.9", "no route to host") for node in range(1, 6)]
    text = paths.describe(broken, {node: f"node {node}" for node in range(6)})
    assert text.startswith("Node 0 cannot connect to node 1 at 10.0.0.9 (no route to host). Node 0 cannot")
    assert "Nor can 2 more pairs of nodes." in text


def test_on_a_device_a_rank_that_computes_is_not_said_to_be_still():
    look = [in_a_lock(0), in_a_lock(1)]
    assert seconds_still(look, look, look, cpu_counts=False) == 0


def test_the_documentation_lists_the_bench():
    text = DOCS.read_text()
    assert [kind.name for kind in HANGS if f"| {kind.name} | {kind.reason} |" not in text] == []
    assert [kind.name for kind in INNOCENT if kind.name not in text] == []


def english(words):
    """Return the text that words make, as the page makes it in other languages."""

    def one(sentence):
        values = [english(value) if isinstance(value, list) else str(value) for value in sentence["values"]]
        template = sentence["text"] if sentence["plural"] is None or values[0] == "1" else sentence["plural"]
        return re.sub(r"%(\d)", lambda found: values[int(found[1]) - 1], template)

    return " ".join(map(one, words))


def test_verdicts_have_their_words_for_other_languages():
    error = "ValueError: no file."
    busy = Fact(1, "runs", place="line 2 of cell [5]", left_over="all_reduce, number 7, of cell [3] has not completed")
    for now in (
        [waits(0), *(idle(rank, error=error) for rank in (1, 2, 3))],
        [waits(0), Fact(1, "dead"), waits(2), waits(3)],
        [waits(0, limit=90.0), busy, waits(2), waits(3)],
        [waits(rank, shape=f"float [{4 + (rank == 1)}]") for rank in range(4)],
        [waits(0, "barrier"), *(waits(rank) for rank in (1, 2, 3))],
    ):
        found = verdict_of(*now)
        assert english(found["message_words"]) == found["message"]
    assert english(verdict_of(busy, still={"e": STILL_SECONDS})["message_words"]).startswith("Nothing has moved")
