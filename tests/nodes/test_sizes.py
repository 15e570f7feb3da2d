"""What is too large for a message between machines is refused, what follows it arrives, and many are read at a time."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from waits import PATIENCE, until_async

from jupyter_dist.agent.nodes.link.sockets import (
    BUNDLE_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_PAYLOAD_BYTES,
    HeadSocket,
    LinkConversation,
    NodeSocket,
    new_keys,
)
from jupyter_dist.agent.nodes.stores import StoreDoor
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.system.limits import within
from jupyter_dist.transport.frames import MAX_HEADER_BYTES, FrameDecoder
from jupyter_dist.transport.stream import FrameStream

NO_LIMIT = 1 << 40


def refused(conversation, header, payload=b""):
    with pytest.raises(JupyterDistError, match="too large for the link between the group's machines") as caught:
        conversation.send(header, payload)
    return caught.value.code == "too_large"


def test_the_largest_payload_crosses_the_sockets_with_what_is_bundled_and_a_larger_one_is_refused():
    async def cross() -> None:
        (public, secret), (client_public, client_secret) = new_keys(), new_keys()
        taken = []
        head = HeadSocket(secret, client_public, lambda _, header, payload: taken.append((header["t"], len(payload))))
        node = NodeSocket(f"127.0.0.1:{head.port}", public, client_secret, lambda *_: None)
        conversation = LinkConversation(NO_LIMIT)
        conversation.connected(node.send, 0)
        conversation.send({"t": "before"}, bytes(BUNDLE_BYTES - 1000))
        conversation.send({"t": "x" * (MAX_HEADER_BYTES - 1000)}, bytes(MAX_PAYLOAD_BYTES))
        assert refused(conversation, {"t": "large"}, bytes(MAX_PAYLOAD_BYTES + 1))
        assert refused(conversation, {"t": "large"}, bytes(MAX_MESSAGE_BYTES + 1))
        assert refused(conversation, {"t": "x" * (MAX_HEADER_BYTES - 20)})  # too long with its numbers
        conversation.send({"t": "after"})
        await until_async(lambda: len(taken) >= 3 or node.is_over, lambda: taken)
        assert [(kind[:6], size) for kind, size in taken] == [
            ("before", BUNDLE_BYTES - 1000),
            ("xxxxxx", MAX_PAYLOAD_BYTES),
            ("after", 0),
        ]
        assert conversation.kept_bytes == BUNDLE_BYTES - 1000 + MAX_PAYLOAD_BYTES  # nothing of what was refused
        node.close()
        head.close()

    asyncio.run(cross())


def test_messages_that_come_while_the_head_rests_are_read_together_and_none_is_lost():
    async def cross() -> None:
        (public, secret), (client_public, client_secret) = new_keys(), new_keys()
        taken, turn, read_in = [], 0, set()

        def take(_identity, header, _payload):
            taken.append(header["t"])
            read_in.add(turn)
            head.rest(0.2)

        head = HeadSocket(secret, client_public, take)
        node = NodeSocket(f"127.0.0.1:{head.port}", public, client_secret, lambda *_: None)
        conversation = LinkConversation(NO_LIMIT)
        conversation.connected(node.send, 0)
        for turn in range(50):
            conversation.send({"t": str(turn)})
            await asyncio.sleep(0.001)  # a message of the socket for each
        await until_async(lambda: len(taken) == 50 or node.is_over, lambda: taken)
        assert taken == [str(number) for number in range(50)]
        assert len(read_in) < 25
        head.rest(0.2)
        conversation.send({"t": "last"})
        await until_async(lambda: taken[-1] == "last")
        node.close()
        head.close()  # while it rests

    asyncio.run(cross())


@pytest.mark.parametrize(
    "question",
    [
        ({"do": "set", "key": "x"}, bytes(MAX_MESSAGE_BYTES + 1)),
        ({"do": "check", "keys": ["x" * (MAX_HEADER_BYTES - 50)]}, b""),
        ({"do": "fetch", "path": "x", "offset": 0}, bytes(MAX_MESSAGE_BYTES + 1)),
    ],
    ids=["value", "keys", "fetch"],
)
def test_a_rank_whose_question_is_too_large_is_told_so_and_the_next_one_is_passed_on(question):
    async def ask() -> None:
        with tempfile.TemporaryDirectory() as folder:
            sent = []
            conversation = LinkConversation(NO_LIMIT)
            conversation.connected(sent.append, 0)
            door = StoreDoor(Path(folder, "door"), conversation.send)
            await door.listen()
            rank = await FrameStream.connect(str(door.path), PATIENCE)
            rank.send(*question)
            answer, _ = await within(PATIENCE, rank.recv())
            assert not answer["ok"]
            assert "too large for the link between the group's machines" in answer["error"]
            rank.send({"do": "peek", "key": "x"})
            await until_async(lambda: sent)
            ((header, _),) = FrameDecoder().feed(b"".join(sent))
            assert (header["n"], header["q"]) == (1, {"do": "peek", "key": "x"})
            rank.close()
            await door.close()
            await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)

    asyncio.run(ask())
