"""Which views are kept, and that a rebuilt one misses nothing that came meanwhile."""

import asyncio

import pytest
from records import Recorder

from jupyter_dist.server.folding import viewstore
from jupyter_dist.server.folding.viewstore import ViewStore


def recorded(num_lines: int) -> Recorder:
    recorder = Recorder(1)
    for number in range(num_lines):
        recorder.stream(0, f"line {number}\n")
    return recorder


def test_records_that_come_during_a_rebuild_are_not_lost():
    records = recorded(10).records

    async def fetch(execution_id):
        store.feed(*records[5])  # told live, while the journal is read up to record 5
        await asyncio.sleep(0)
        store.feed(*records[6])
        return records[:6]

    store = ViewStore(fetch)

    async def main():
        for record in records[2:5]:
            assert store.feed(*record) is None  # not requested: not kept
        view = await store.get("e-1", "0")
        for record in records[7:]:
            store.feed(*record)
        return view.snapshot().items

    (item,) = asyncio.run(main())
    assert item.text == "".join(f"line {number}\n" for number in range(10))


def test_a_cell_that_more_ranks_got_while_no_view_was_kept_is_rebuilt_from_its_begin():
    recorder = Recorder(1)
    recorder.stream(0, "begun\n")
    recorder._add("begin", b"code", ranks="1", extends=True)
    recorder.stream(1, "begun\n")

    async def fetch(execution_id):
        return recorder.records

    store = ViewStore(fetch)
    for record in recorder.records[2:]:  # a server that came after the beginning
        assert store.feed(*record) is None
    (item,) = asyncio.run(store.get("e-1", "0-1")).snapshot().items
    assert (item.ranks, item.text) == ("0-1", "begun\n")


def test_a_view_is_complete_when_the_end_of_its_execution_was_told_before_its_records():
    records = recorded(3).records
    asked = []

    async def fetch(execution_id):
        asked.append(execution_id)
        return records

    store = ViewStore(fetch)
    store.expect("e-1", "0")

    async def main():
        shown = await store.get("e-1", "0")  # a page's, while it runs
        assert (shown.snapshot().items, asked) == ((), [])
        assert await store.get("e-1", "0", is_final=True) is shown
        (item,) = shown.snapshot().items
        assert item.text == "line 0\nline 1\nline 2\n"
        for record in records:  # now they come
            store.feed(*record)
        assert shown.snapshot().items == (item,)
        assert await store.get("e-1", "0", is_final=True) is shown
        assert asked == ["e-1"]

    asyncio.run(main())


def test_records_that_come_while_a_view_could_not_be_completed_are_not_lost():
    records = recorded(3).records

    async def fetch(execution_id):
        for record in records[2:]:
            store.feed(*record)
        raise ConnectionError

    store = ViewStore(fetch)
    for record in records[:2]:
        store.feed(*record)

    async def main():
        with pytest.raises(ConnectionError):
            await store.get("e-1", "0", is_final=True)
        return await store.get("e-1", "0")

    (item,) = asyncio.run(main()).snapshot().items
    assert item.text == "line 0\nline 1\nline 2\n"


def test_two_who_ask_get_one_view():
    async def fetch(execution_id):
        await asyncio.sleep(0)
        return recorded(3).records

    store = ViewStore(fetch)

    async def main():
        return await asyncio.gather(store.get("e-1", "0"), store.get("e-1", "0"))

    first, second = asyncio.run(main())
    assert first is second


def test_finished_views_are_forgotten_when_there_are_many(monkeypatch):
    monkeypatch.setattr(viewstore, "MAX_FINISHED", 3)

    async def fetch(execution_id):
        raise AssertionError

    store = ViewStore(fetch)
    for number in range(10):
        recorder = recorded(1)
        recorder.end()
        for header, payload in recorder.records:
            store.feed({**header, "execution_id": f"e-{number}"}, payload)
    kept = [number for number in range(10) if store.peek(f"e-{number}") is not None]
    assert kept == [6, 7, 8, 9]


def test_cells_that_wait_do_not_push_out_the_view_of_one_that_runs():
    async def fetch(execution_id):
        raise AssertionError("it is in memory")

    store = ViewStore(fetch)
    records = recorded(3).records
    for record in records[:2]:
        store.feed(*record)
    for number in range(2 * viewstore.MAX_OPEN):
        store.expect(f"e-queued-{number}", "0")
    assert len(store.open()) == viewstore.MAX_OPEN
    for record in records[2:]:
        assert store.feed(*record) == "e-1"
    (item,) = asyncio.run(store.get("e-1", "0")).snapshot().items
    assert item.text == "line 0\nline 1\nline 2\n"
    begin = {"seq": 9, "at": 0.0, "kind": "begin", "execution_id": "e-queued-0", "ranks": "0"}
    assert store.feed(begin, b"") == "e-queued-0"  # one that was dropped comes back when it begins
