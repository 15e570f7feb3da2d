"""Properties of every view, for any output in any order."""

from __future__ import annotations

import itertools
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from records import Recorder, make_view, of_rank

from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.server.folding.feeding.feeds import mask_of
from jupyter_dist.server.folding.feeding.lines import LineBuffer
from jupyter_dist.server.folding.feeding.rankfeed import Decoders
from jupyter_dist.server.folding.snapshots import EMPTY, Snapshot, difference, mask_text

WORDS = ["loss 0.5\n", "loss 0.25\n", "a\n", "b\n", "\n", "a", "part", "x 1 y", "\r", "50%\r", "tail"]
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["stdout", "stdout", "stdout", "stderr", "display"]),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("".join),
    ),
    max_size=40,
)
Event = tuple[int, str, str]


def record(events: list[Event], end: bool = True) -> Recorder:
    recorder = Recorder(4)
    for rank, kind, text in events:
        if kind == "display":
            recorder.display(rank, text)
        else:
            recorder.stream(rank, text, kind)
    if end:
        recorder.end()
    return recorder


def expected_of_rank(events: list[Event], rank: int) -> list[tuple[str, str]]:
    """What a single rank's output looks like by itself."""
    said: list[tuple[str, str]] = []
    buffer = LineBuffer()
    kind_now = ""

    def say(kind: str, text: str) -> None:
        if said and said[-1][0] == kind != "display_data":
            said[-1] = (kind, said[-1][1] + text)
        elif text or kind == "display_data":
            said.append((kind, text))

    for event_rank, kind, text in [*events, (rank, "end", "")]:
        if event_rank != rank:
            continue
        if kind != kind_now:
            say(kind_now, buffer.text)
            buffer.reset()
            kind_now = kind
        if kind == "display":
            say("display_data", text)
        elif kind != "end":
            say(kind, "".join(buffer.feed(text)))
    return said


@given(EVENTS)
def test_the_fold_is_lossless(events: list[Event]) -> None:
    snapshot = record(events).view().snapshot()
    for rank in range(4):
        assert of_rank(snapshot, rank) == expected_of_rank(events, rank)


@given(EVENTS, st.randoms(use_true_random=False))
def test_equal_outputs_fold_to_one_whatever_the_order(events: list[Event], rng: random.Random) -> None:
    mine = [(kind, text) for rank, kind, text in events if rank == 0]
    left = {rank: list(mine) for rank in range(4)}
    mixed: list[Event] = []
    while any(left.values()):
        rank = rng.choice([rank for rank, rest in left.items() if rest])
        mixed.append((rank, *left[rank].pop(0)))
    snapshot = record(mixed).view().snapshot()
    assert all(item.ranks == "0-3" for item in snapshot.items)
    assert of_rank(snapshot, 0) == expected_of_rank([(0, *event) for event in mine], 0)


@given(EVENTS, st.randoms(use_true_random=False))
def test_chunks_do_not_matter(events: list[Event], rng: random.Random) -> None:
    cut: list[Event] = []
    for rank, kind, text in events:
        at = rng.randint(0, len(text)) if kind != "display" else 0
        cut += [(rank, kind, part) for part in (text[:at], text[at:]) if part or kind == "display"][-2:]
        if kind == "display" and len(cut) > 1 and cut[-2:] == [(rank, kind, ""), (rank, kind, text)]:
            del cut[-2]
    whole, parts = record(events).view().snapshot(), record(cut).view().snapshot()
    assert [(item.ranks, item.kind, item.text) for item in whole.items] == [
        (item.ranks, item.kind, item.text) for item in parts.items
    ]


def apply(had: list[dict[str, Any]], change: dict[str, Any]) -> list[dict[str, Any]]:
    """What a page does with a `view` message (docs/api.md)."""
    items = [item for item in had if item["id"] not in change["removed"]]
    for changed in change["items"]:
        new = dict(changed)
        after = new.pop("after")
        old = next((item for item in items if item["id"] == new["id"]), None)
        if "append" in new:
            assert old is not None
            text = old["output"]["text"] + new.pop("append")
            new["output"] = {**old["output"], "text": text}
        items = [item for item in items if item["id"] != new["id"]]
        position = 0 if after is None else 1 + [item["id"] for item in items].index(after)
        items.insert(position, new)
    return items


def without_seq(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in item.items() if key != "seq"} for item in items]


@settings(max_examples=60)
@given(EVENTS, st.sets(st.integers(0, 60)))
def test_differences_applied_in_turn_give_the_view(events: list[Event], looks: set[int]) -> None:
    recorder = record(events)
    view = make_view(4, [])
    had: list[dict[str, Any]] = []
    sent = EMPTY
    for number, (header, payload) in enumerate(recorder.records):
        view.feed(header, payload)
        if number in looks or number == len(recorder.records) - 1:
            snapshot = view.snapshot()
            had = apply(had, difference(sent, snapshot))
            sent = snapshot
            assert without_seq(had) == without_seq(snapshot.to_list())


@settings(max_examples=60)
@given(EVENTS, st.sets(st.integers(0, 60)))
def test_a_rebuilt_view_is_the_same(events: list[Event], looks: set[int]) -> None:
    recorder = record(events, end=False)
    live = make_view(4, [])
    for number, (header, payload) in enumerate(recorder.records):
        live.feed(header, payload)
        if number in looks:
            live.snapshot()
    assert live.snapshot().to_list() == recorder.view().snapshot().to_list()


@given(EVENTS)
def test_ids_are_unique_and_seqs_tell_what_changed(events: list[Event]) -> None:
    recorder = record(events)
    view = make_view(4, [])
    before: Snapshot = EMPTY
    for header, payload in recorder.records:
        view.feed(header, payload)
        snapshot = view.snapshot()
        ids = [item.id for item in snapshot.items]
        assert len(set(ids)) == len(ids)
        known = {item.id: item for item in before.items}
        for item in snapshot.items:
            if item.id not in known or not item.same_content(known[item.id]):
                assert item.seq == header["seq"]
        before = snapshot


@settings(max_examples=8)
@given(st.integers(0, 1), st.integers(1, 300), st.randoms(use_true_random=False))
def test_a_flood_is_elided_alike_in_large_and_small_chunks(ranks: int, num_small: int, rng: random.Random) -> None:
    lines = [f"{'é' * (number % 3)} {number}\n" for number in range(6000)]
    text = "".join(lines)
    cuts = sorted(rng.randint(0, len(text)) for _ in range(num_small))
    small = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    events = [
        (rank, "stdout", part) for rank in range(ranks + 1) for part in (text[:100], text[100:50000], text[50000:])
    ]
    finer = [(rank, "stdout", part) for rank in range(ranks + 1) for part in small if part]
    whole, parts = record(events).view().snapshot(), record(finer).view().snapshot()
    assert [(item.id, item.ranks, item.kind, item.text) for item in whole.items] == [
        (item.id, item.ranks, item.kind, item.text) for item in parts.items
    ]


@given(st.sets(st.integers(0, 200)).map(sorted))
def test_a_mask_reads_as_its_ranks(ranks):
    assert mask_text(mask_of(ranks)) == str(RankSet(ranks))


@given(st.text(alphabet="aé€😀\n") | st.binary(), st.lists(st.integers(0, 40)), st.integers(0, 40))
def test_text_is_the_same_wherever_its_bytes_are_split(text, cuts, copied_at):
    data = text.encode() if isinstance(text, str) else text
    places = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
    decoders, found = Decoders(), ""
    for first, last in itertools.pairwise(places):
        found += decoders.decode("stdout", data[first:last])
        if last >= copied_at:
            decoders = decoders.copy()
    assert found + decoders.decode("stdout", b"", final=True) == data.decode("utf-8", "replace")
    assert decoders.hold_nothing
