"""Records of many ranks: nothing is lost, each rank's order stays, and readers see what each rank said."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import of_rank as shown_of_rank

from jupyter_dist.journal.reader import JournalCursor, rank_page
from jupyter_dist.journal.records.sound import is_sound, is_wide
from jupyter_dist.journal.records.wide import MAX_PART_BYTES, MAX_SHARED_BYTES, each_rank, of_rank
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.server.folding.views import View

RANKS = 5
EXECUTION = {"execution_id": "e"}
BASE = {"seq": 1, "at": 1.0, "kind": "stream", "execution_id": "e", "name": "stdout"}


class Turns:
    """An event loop that turns when it is told to."""

    def __init__(self):
        self._soon = []

    def call_soon(self, callback):
        self._soon.append(callback)

    def turn(self):
        soon, self._soon = self._soon, []
        for callback in soon:
            callback()


@pytest.fixture
def turns():
    return Turns()


@pytest.fixture
def journal(tmp_path, turns):
    journal = JournalWriter(tmp_path)
    journal.join_records(turns.call_soon)
    return journal


def read(directory):
    cursor = JournalCursor(directory)
    found = [(record.header, record.payload) for records in iter(cursor.read, []) for record in records]
    cursor.close()
    return found


streams = st.tuples(
    st.integers(0, RANKS - 1),
    st.sampled_from([("stream", {"name": "stdout"}), ("stream", {"name": "stderr"}), ("display_data", {})]),
    st.sampled_from([b"", b"same\n", b"half a li", b"ne\n", b"y" * (MAX_PART_BYTES + 1)]),
)
ends = st.tuples(
    st.integers(0, RANKS - 1),
    st.tuples(st.just("rank_end"), st.fixed_dictionaries({"status": st.sampled_from(["ok", "error"])})),
    st.sampled_from([0.5, 2, None]),
)
turns_of = st.lists(st.lists(streams | ends, max_size=20), max_size=4)


@given(said=turns_of)
def test_each_rank_has_said_what_it_said_in_its_order(said, tmp_path_factory):
    directory, turns = tmp_path_factory.mktemp("journal"), Turns()
    journal = JournalWriter(directory)
    journal.join_records(turns.call_soon)
    wanted = {rank: [] for rank in range(RANKS)}
    for turn in said:
        for rank, (kind, fields), value in turn:
            own = {"seconds": value} if kind == "rank_end" else {}
            payload = b"" if kind == "rank_end" else value
            journal.append_of(rank, kind, payload, **EXECUTION, **fields, **own)
            wanted[rank].append((kind, {**fields, **own}, payload))
        turns.turn()
    found = {rank: [] for rank in range(RANKS)}
    for header, payload in chain.from_iterable(each_rank(*record) for record in read(directory)):
        assert is_sound(header, RANKS)
        fields = {name: header[name] for name in ("name", "status", "seconds") if name in header}
        found[header["rank"]].append((header["kind"], fields, payload))
    assert found == wanted
    for rank in range(RANKS):
        page, more = rank_page(directory, rank, None, 1 << 20)
        assert [(record.header["kind"], record.payload) for record in page] == [(k, p) for k, _, p in wanted[rank]]
        assert not more
        assert not any(is_wide(record.header) for record in page)
    journal.close()


@given(said=turns_of)
def test_a_view_is_the_same_as_of_single_records(said, tmp_path_factory):
    directory, turns = tmp_path_factory.mktemp("journal"), Turns()
    journal = JournalWriter(directory)
    journal.join_records(turns.call_soon)
    for turn in said:
        for rank, (kind, fields), value in turn:
            if kind == "stream":
                journal.append_of(rank, kind, value, **EXECUTION, **fields)
        turns.turn()
    wide, single = View("e", tuple(range(RANKS))), View("e", tuple(range(RANKS)))
    records = read(directory)
    narrow = chain.from_iterable(each_rank(*record) for record in records)
    for header, payload in records:
        wide.feed(header, payload)
    for seq, (header, payload) in enumerate(narrow, 1):
        single.feed({**header, "seq": seq}, payload)
    for rank in range(RANKS):
        assert shown_of_rank(wide.snapshot(), rank) == shown_of_rank(single.snapshot(), rank)
    assert [(item.ranks, item.text) for item in wide.snapshot().items] == [
        (item.ranks, item.text) for item in single.snapshot().items
    ]
    journal.close()


def test_what_all_ranks_say_is_one_record(tmp_path, journal, turns):
    for rank in (1, 0, 2):
        journal.append_of(rank, "stream", b"same\n", **EXECUTION, name="stdout")
        journal.append_of(rank, "stream", b"%d\n" % rank, **EXECUTION, name="stderr")
        journal.append_of(rank, "rank_end", **EXECUTION, status="ok", seconds=float(rank))
    assert read(tmp_path) == []
    turns.turn()
    (same, _), (different, payload), (end, _) = read(tmp_path)
    assert (same["ranks"], "sizes" in same) == ("0-2", False)
    assert (different["sizes"], payload) == ([2, 2, 2], b"0\n1\n2\n")
    assert end["seconds"] == [0.0, 1.0, 2.0]
    assert of_rank(different, payload, 1)[1] == b"1\n"


def test_another_record_comes_after_what_ranks_said_before(tmp_path, journal):
    journal.append_of(0, "stream", b"x", **EXECUTION, name="stdout")
    assert journal.last_seq == 1
    journal.append_of(0, "stream", b"y", **EXECUTION, name="stdout")
    assert journal.append("end", **EXECUTION, state="ok") == 3
    journal.append_of(1, "stream", b"z", **EXECUTION, name="stdout")
    journal.close()
    assert [header["kind"] for header, _ in read(tmp_path)] == ["stream", "stream", "end", "stream"]


def test_only_short_payloads_share_a_record_with_others_and_none_that_is_huge(tmp_path, journal, turns):
    for rank in range(3):
        journal.append_of(rank, "stream", b"%d" % rank * MAX_PART_BYTES * 2, **EXECUTION, name="stdout")
        journal.append_of(rank, "display_data", b"x" * (MAX_SHARED_BYTES + 1), **EXECUTION)
    turns.turn()
    assert not any(is_wide(header) for header, _ in read(tmp_path))


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "elsewhere"},
        {"execution_id": 7},
        {"name": "stdout", "seconds": "1"},
    ],
)
def test_what_readers_reject_is_not_written(tmp_path, journal, turns, fields):
    journal.append_of(0, "stream", b"x", **EXECUTION, name="stdout")
    with pytest.raises(ValueError, match="an invalid stream"):
        journal.append_of(1, "stream", b"x", **{**EXECUTION, **fields})
    with pytest.raises(ValueError, match="an invalid rank_end"):
        journal.append_of(1, "rank_end", **EXECUTION, status="ok", seconds=float("nan"))
    turns.turn()
    assert [header.get("rank") for header, _ in read(tmp_path)] == [0]


@pytest.mark.parametrize("seconds", [float("nan"), 1e300, "1"])
def test_what_one_rank_says_wrongly_costs_the_others_nothing(tmp_path, journal, turns, seconds):
    journal.append_of(0, "rank_end", **EXECUTION, status="ok", seconds=1.0)
    with pytest.raises(ValueError, match="an invalid rank_end"):
        journal.append_of(1, "rank_end", **EXECUTION, status="ok", seconds=seconds)
    journal.append_of(2, "rank_end", **EXECUTION, status="ok", seconds=2.0)
    turns.turn()
    assert [(header["ranks"], header["seconds"]) for header, _ in read(tmp_path)] == [("0,2", [1.0, 2.0])]


@pytest.mark.parametrize(
    "fields",
    [
        {"ranks": "0-9"},  # of a group of 5
        {"ranks": "0-1", "rank": 1},
        {"ranks": "0-1", "sizes": [1]},
        {"ranks": "0-1", "sizes": [1, -1]},
        {"ranks": "0-1", "sizes": 7},
        {"ranks": "0-1", "seconds": 1.0},
        {"ranks": ""},
        {"ranks": ["0"]},
    ],
)
def test_forged_wide_records_are_rejected(fields):
    assert is_sound({**BASE, "ranks": "0-1", "sizes": [0, 4]}, RANKS)
    assert not is_sound({**BASE, **fields}, RANKS)


def test_a_forged_payload_costs_no_more_than_one():
    """A rank could write one long payload for all ranks of its group, and sizes beyond what is there."""
    said = list(each_rank({**BASE, "ranks": "0-4"}, b"x" * (MAX_SHARED_BYTES + 1)))
    assert [payload for _, payload in said] == [b""] * 5
    said = list(each_rank({**BASE, "ranks": "0-1", "sizes": [2, 1 << 50]}, b"xyz"))
    assert [payload for _, payload in said] == [b"xy", b"z"]


def test_forged_lists_may_be_null():
    forged = {**BASE, "ranks": "0-1", "sizes": None, "seconds": None}
    assert is_sound(forged, RANKS)
    assert [(header["rank"], payload) for header, payload in each_rank(forged, b"x")] == [(0, b"x"), (1, b"x")]
    assert of_rank(forged, b"x", 1)[1] == b"x"


def test_a_full_disk_counts_what_each_rank_said(tmp_path, journal, turns, monkeypatch):
    monkeypatch.setattr(journal, "_write", lambda _: False)
    for rank in range(4):
        journal.append_of(rank, "stream", b"12345", **EXECUTION, name="stdout")
    turns.turn()
    assert journal.overflow.num_bytes == 20
