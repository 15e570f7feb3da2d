"""Whatever the other side of a link says costs that message and no other, and what it may fill is limited."""

import asyncio
import logging

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jupyter_dist.agent.nodes import remote, stores
from jupyter_dist.agent.nodes.files import FileDoor
from jupyter_dist.agent.nodes.link import hello
from jupyter_dist.agent.nodes.link.sockets import handle_each
from jupyter_dist.agent.nodes.remote import NodeDoors, RemoteNode, RemoteProcess
from jupyter_dist.agent.nodes.stores import LinkStores
from jupyter_dist.agent.processes.records import ArrivedRecords
from jupyter_dist.system.sparing import IN_FULL, MAX_TEXT, Sparing
from jupyter_dist.transport.frames import FrameDecoder, FrameError, encode_frame
from jupyter_dist.transport.resuming import Conversation

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
SOUND = {"t": "store", "c": 3, "q": {"do": "set", "store": "0", "key": "k"}}
KINDS = ("records", "channel", "answer", "exited", "store", "store_left", "warm", "heard")


def odd_messages():
    """Messages as a node sends them, with fields that are missing, or are something else."""
    question = st.dictionaries(st.sampled_from(["do", "store", "key", "keys", "amount", "expected"]), JSON, max_size=5)
    fields = st.dictionaries(st.sampled_from(["c", "q", "p", "id", "ok", "records", "json", "error", "code"]), JSON)
    deeds = st.sampled_from(["set", "add", "get", "wait", "check", "compare_set", "deliver", "fetch", "break"])
    asked = st.tuples(question, deeds).map(lambda found: {"t": "store", "c": 3, "q": {**found[0], "do": found[1]}})
    return asked | st.tuples(fields, st.sampled_from(KINDS)).map(lambda found: {**found[0], "t": found[1]})


class Link:
    """A node agent's conversation, and the node as the head has it."""

    def __init__(self) -> None:
        self.node = RemoteNode(
            0, range(1), lambda *_: None, NodeDoors(LinkStores(), FileDoor(lambda: ()), ArrivedRecords(), list)
        )
        self.agent = Conversation(1 << 30)
        self.answers = []
        self.said = []

    def connect(self) -> None:
        self.said.clear()
        self.node.conversation.connected(self._answered, 0)
        self.agent.connected(self.said.append, self.node.conversation.received)

    def _answered(self, frame: bytes) -> None:
        self.answers += FrameDecoder().feed(frame)

    def deliver(self) -> None:
        """Pass on what was said; connect again if the head says so."""
        bundle = b"".join(self.said)
        self.said.clear()
        if bundle and not handle_each([bundle], self.node.receive):
            self.connect()

    def is_answered(self) -> bool:
        """Whether a sound question has its answer."""
        self.agent.send(SOUND, b"v")
        self.deliver()
        self.deliver()
        return self.answers[-1][0]["a"] == {"ok": True}


@given(st.lists(odd_messages(), max_size=8))
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_no_message_of_a_node_stops_those_after_it(messages):
    async def check() -> None:
        link = Link()
        link.connect()
        for message in messages:
            link.agent.send(message)
        link.deliver()
        assert link.is_answered()
        asked = [m for m in messages if m["t"] == "store" and m.get("c") == 3 and isinstance(m.get("q"), dict)]
        waits = [m for m in asked if m["q"].get("do") in ("get", "wait")]
        assert len(link.answers) >= 1 + len(asked) - len(waits)  # each rank that asks is answered

    logging.disable(logging.CRITICAL)
    try:
        asyncio.run(check())
    finally:
        logging.disable(logging.NOTSET)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_what_a_connection_loses_or_damages_is_sent_again_over_the_next_one(data):
    sent = [({"t": f"m{number}"}, bytes(number)) for number in range(data.draw(st.integers(1, 12)))]
    taken = []
    agent, head = Conversation(1 << 30), Conversation(1 << 30)
    frames = []
    agent.connected(frames.append, 0)
    for message in sent:
        agent.send(*message)

    def receive(header, payload):
        if head.take(header, payload):
            taken.append((header["t"], payload))
            if data.draw(st.booleans()):
                raise RuntimeError("it cannot be handled")

    damaged, last = damage(data, frames[:-1]), frames[-1]
    logging.disable(logging.CRITICAL)
    try:
        if not (handle_each([b"".join(damaged)], receive) and handle_each([last], receive)):
            frames.clear()
            agent.connected(frames.append, head.received)
            assert handle_each([b"".join(frames)], receive)
    finally:
        logging.disable(logging.NOTSET)
    assert taken == [(header["t"], payload) for header, payload in sent]


def damage(data, frames):
    """Lose or change one of these frames."""
    if not frames:
        return frames
    at, how = data.draw(st.integers(0, len(frames) - 1)), data.draw(st.sampled_from(["lose", "cut", "n", "ack"]))
    if how == "lose":
        return frames[:at] + frames[at + 1 :]
    if how == "cut":
        return [*frames[:at], frames[at][:-1]]
    ((header, payload),) = FrameDecoder().feed(frames[at])
    changed = {**header, how: data.draw(st.sampled_from(["1", -1, 1.5, True, [], 1 << 70]))}
    return [*frames[:at], encode_frame(changed, payload), *frames[at + 1 :]]


HELLO = {
    "session": "s1", "node": None, "received": 0, "host": "n1", "pid": 7, "address": "10.0.0.1", "interface": "eth0",
    "python": "3.11", "torch": "2.13.0", "memory": 1 << 30,
    "cpus": 8, "machine_cpus": 64, "given_bytes": 1 << 29,
    "devices": [{"index": 0, "name": "H100", "uuid": "GPU-1", "memory_bytes": 1 << 36}],
}  # fmt: skip


@given(st.dictionaries(st.sampled_from(sorted(HELLO)), JSON, max_size=3))
def test_what_a_node_says_of_its_machine_is_as_the_api_says_or_refused(changes):
    try:
        found = hello.checked({**HELLO, **changes, "more": 1})
    except ValueError:
        return
    texts = [found[name] for name in ("session", "host", "address", "interface", "python", "torch")]
    texts += [device[name] for device in found["devices"] for name in ("name", "uuid")]
    assert all(text is None or (isinstance(text, str) and text.isprintable()) for text in texts)
    numbers = [found["memory"], *(device[name] for device in found["devices"] for name in ("index", "memory_bytes"))]
    assert all(number is None or type(number) is int for number in numbers)
    assert found["host"]
    assert set(found) == set(HELLO)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("host", "n1\nrank 0: ok"),
        ("host", "\x1b]52;c;eA==\a"),
        ("host", "a" * 300),
        ("host", "\u202eevil"),
        ("devices", 3),
        ("devices", [{"name": 1}]),
        ("memory", "much"),
        ("address", ["10.0.0.1"]),
        ("interface", {}),
        ("received", -1),
    ],
)
def test_a_hello_that_forges_is_refused_by_the_name_of_its_field(name, value):
    assert hello.checked(HELLO) == HELLO
    with pytest.raises(ValueError, match=f"'{name}' in its first message is not valid"):
        hello.checked({**HELLO, name: value})


def test_keys_and_questions_that_wait_count_and_their_room_is_free_again(monkeypatch):
    monkeypatch.setattr(stores, "MAX_BYTES", 10_000)
    held, answers = LinkStores(), []

    def ask(do, **fields):
        held.ask("asker", {"store": "0", "do": do, **fields}, b"v", lambda header, _: answers.append(header))
        return answers[-1] if answers else None

    for again in range(2):
        answers.clear()
        for number in range(100):
            ask("set", key=f"{number:03}" + "k" * 900)
        refused = [answer for answer in answers if not answer["ok"]]
        assert 85 < len(refused) < 95, again
        assert "hold more than" in refused[0]["error"]
        for number in range(100):
            ask("delete", key=f"{number:03}" + "k" * 900)
        answers.clear()
        for number in range(100):
            ask("wait", keys=[f"{number:03}" + "w" * 900])
        assert 85 < len(answers) < 95  # those that still wait have no answer
        held.forget("asker")
        assert ask("set", key="small") == {"ok": True}
        assert ask("delete", key="small") == {"ok": True, "deleted": True}
    held.break_current()
    answers.clear()
    assert ask("set", key="k" * 300) == {"ok": False, "error": stores.BROKEN}


def test_a_node_that_never_ends_its_messages_loses_the_rank_and_not_the_heads_memory(monkeypatch):
    most = 1 << 20
    monkeypatch.setattr(remote, "MAX_PENDING_BYTES", most)

    class Rank:
        is_lost = False

        is_mute = False

        def receive(self, *_) -> None:
            pass

        def lost_channel(self) -> None:
            self.is_lost = True

    async def check() -> None:
        node = RemoteNode(
            0, range(3), lambda *_: None, NodeDoors(LinkStores(), FileDoor(lambda: ()), ArrivedRecords(), list)
        )
        ranks = [Rank() for _ in range(3)]
        for number, rank in enumerate(ranks):
            process = node._processes[number] = RemoteProcess(number, node)
            process.listen(rank)
        half = encode_frame({"t": "x"}, bytes(most // 2))[:-1]
        for number in range(3):
            for start in range(0, len(half), 1 << 16):
                node._take({"t": "channel", "p": number}, half[start : start + (1 << 16)])
        assert [rank.is_lost for rank in ranks] == [False, True, True]
        node._take({"t": "channel", "p": 0}, b"\0")  # the message of rank 0 is complete
        assert (node._processes[0].pending_bytes, node._pending) == (0, {})

    asyncio.run(check())


def test_an_error_that_repeats_is_logged_a_few_times_and_each_time_shortly():
    log, written = logging.Logger("test"), []
    handler = logging.Handler()
    handler.emit = lambda record: written.append(record.getMessage())
    handler.addFilter(Sparing())
    log.addHandler(handler)
    for _ in range(5000):
        try:
            raise FrameError("x")
        except FrameError:
            log.exception("bad %s", "y" * 2 * MAX_TEXT)
    assert IN_FULL + 5 < len(written) < IN_FULL + 12
    assert all(len(text) < MAX_TEXT + 100 for text in written)
    assert written[-1].endswith("[this was logged 4096 times]")
    log.error("another")
    assert written[-1] == "another"
