"""Values on their way to the ranks of a node: the door on which ranks ask (agent/nodes/stores.py), over real sockets."""

import asyncio
import os
import tempfile
from pathlib import Path

from waits import PATIENCE, until_async

from jupyter_dist.agent.nodes.stores import StoreDoor
from jupyter_dist.transport.stream import FrameStream

PART = os.urandom(1 << 20)
QUESTION = {"do": "fetch", "path": "/dev/shm/jupyter-dist-x/all", "offset": 0}
OTHER = {"do": "peek", "key": "x"}  # it goes to the head at once


async def open_door(folder: str):
    asked = []
    door = StoreDoor(Path(folder, "door"), lambda header, value: asked.append(header))
    await door.listen()
    ranks = [await FrameStream.connect(str(door.path), PATIENCE) for _ in range(3)]
    return door, asked, ranks


async def until_asked(asked, number):
    await until_async(lambda: len(asked) >= number, lambda: asked)


async def end(door, ranks):
    for rank in ranks:
        rank.close()
    await door.close()
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)
    await asyncio.sleep(0.05)  # the event loop closes the sockets


def questions(asked):
    return [header["q"] for header in asked if header["t"] == "store"]


def test_what_all_ranks_of_a_node_fetch_crosses_the_link_once():
    async def fetch() -> None:
        with tempfile.TemporaryDirectory() as folder:
            door, asked, ranks = await open_door(folder)
            first, second, late = ranks
            for rank in (first, second):
                rank.send(QUESTION)
            await until_asked(asked, 1)
            door.answer(asked[0]["c"], {"ok": True, "size": len(PART)}, PART)
            assert (await first.recv())[1] == PART
            assert (await second.recv())[1] == PART
            late.send(QUESTION)
            assert (await late.recv())[1] == PART
            assert questions(asked) == [QUESTION]
            await end(door, ranks)

    asyncio.run(fetch())


def test_a_refusal_reaches_all_who_wait_and_is_not_kept():
    async def fetch() -> None:
        with tempfile.TemporaryDirectory() as folder:
            door, asked, ranks = await open_door(folder)
            first, second, late = ranks
            first.send(QUESTION)
            await until_asked(asked, 1)
            second.send(QUESTION)
            second.send(OTHER)
            # So what came before it was read: a rank that asks after a refusal asks again.
            await until_asked(asked, 2)
            door.answer(asked[0]["c"], {"ok": False, "error": "no", "errno": 1}, b"")
            for rank in (first, second):
                assert (await rank.recv())[0]["errno"] == 1
            late.send(QUESTION)
            await until_asked(asked, 3)
            assert questions(asked) == [QUESTION, OTHER, QUESTION]
            await end(door, ranks)

    asyncio.run(fetch())


def test_a_rank_that_dies_while_it_asks_for_all_does_not_hold_up_the_others():
    async def fetch() -> None:
        with tempfile.TemporaryDirectory() as folder:
            door, asked, ranks = await open_door(folder)
            first, second, _ = ranks
            first.send(QUESTION)
            await until_asked(asked, 1)
            second.send(QUESTION)
            first.abort()
            await until_asked(asked, 2)
            assert asked[1]["t"] == "store_left"
            door.answer(asked[0]["c"], {"ok": True, "size": len(PART)}, PART)
            assert (await second.recv())[1] == PART
            await end(door, ranks)

    asyncio.run(fetch())
