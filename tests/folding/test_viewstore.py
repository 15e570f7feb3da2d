"""Which views are kept, and that a rebuilt one misses nothing that came meanwhile."""

import asyncio

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
