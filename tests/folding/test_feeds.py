"""Ranks that say the same share a feed: they are shown as if each had one of its own."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from records import Record, of_rank

from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.server.folding.feeding.feeds import Feeds
from jupyter_dist.server.folding.fold import Fold
from jupyter_dist.server.folding.views import View

RANKS = 5  # and a sixth, which is no part of the execution
TEXTS = [b"loss 0.5\n", b"loss 0.25\n", b"a\n", b"a", b"x\r", b"\xc3", b"\xa9", b"\x1b[", b"K", b"b\nc", b"d\n" * 2500]


def rich(**content: Any) -> bytes:
    return json.dumps({"metadata": {}, **content}).encode()


def display(text: str, name: str | None) -> bytes:
    return rich(data={"text/plain": text}, transient={"display_id": name} if name else {})


said = st.one_of(
    st.tuples(st.just("stream"), st.sampled_from(TEXTS), st.sampled_from([{"name": "stdout"}, {"name": "stderr"}])),
    st.tuples(
        st.just("display_data"), st.builds(display, st.sampled_from("ab"), st.sampled_from([None, "d"])), st.just({})
    ),
    st.tuples(st.just("update_display_data"), st.builds(display, st.sampled_from("bc"), st.just("d")), st.just({})),
    st.tuples(st.just("clear_output"), st.builds(lambda wait: rich(wait=wait), st.booleans()), st.just({})),
    st.tuples(st.just("rank_end"), st.just(b""), st.just({"status": "ok"})),
)
steps = st.lists(st.tuples(st.sets(st.integers(0, RANKS), min_size=1), said), max_size=25)


def records(steps: list[Any], is_wide: bool) -> list[Record]:
    found: list[Record] = []
    for ranks, (kind, payload, fields) in steps:
        sets = [ranks] if is_wide else [{rank} for rank in sorted(ranks)]
        for some in sets:
            whose = {"ranks": str(RankSet(some))} if len(some) > 1 else {"rank": min(some)}
            header = {"seq": len(found) + 1, "at": 0.0, "kind": kind, "execution_id": "e", **fields, **whose}
            found.append((header, payload))
    return found


def view_of(found: list[Record]) -> View:
    view = View("e", tuple(range(RANKS)))
    for record in found:
        view.feed(*record)
    return view


@settings(max_examples=300)
@given(steps)
def test_each_rank_is_shown_what_it_said(steps):
    shared, own = view_of(records(steps, True)).snapshot(), view_of(records(steps, False)).snapshot()
    for rank in range(RANKS + 1):
        assert of_rank(shared, rank) == of_rank(own, rank)


@given(steps, st.sets(st.integers(0, 25)))
def test_a_view_that_was_looked_at_is_the_same_as_one_that_was_not(steps, looks):
    found = records(steps, True)
    live = View("e", tuple(range(RANKS)))
    for number, record in enumerate(found):
        live.feed(*record)
        if number in looks:
            live.snapshot()
    snapshot = live.snapshot()
    assert snapshot.to_list() == view_of(found).snapshot().to_list()
    ids = [item.id for item in snapshot.items]
    assert len(set(ids)) == len(ids)


def test_a_thousand_ranks_that_say_the_same_have_one_feed_and_are_told_apart_when_they_do_not():
    feeds = Feeds(tuple(range(1024)), Fold())
    for feed in feeds.of(range(1024)):
        feed.stream("stdout", b"step 1\n", 1)
    assert list(feeds.unsettled(range(512))) == []  # the end of some changes nothing
    assert [feed.rank for feed in feeds] == [0]
    (late,) = feeds.of([700])
    late.stream("stdout", b"step 2\n", 2)
    assert [(feed.rank, feed.mask.bit_count()) for feed in feeds] == [(0, 1023), (700, 1)]
    (first,) = feeds.of([0])
    assert [feed.rank for feed in feeds] == [0, 1, 700]
    assert feeds.ranks() == list(range(1024))
    assert first.mask == 1
