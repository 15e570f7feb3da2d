"""A conversation over connections that are cut: every message arrives once and in order."""

from hypothesis import given
from hypothesis import strategies as st

from jupyter_dist.transport.frames import FrameDecoder
from jupyter_dist.transport.resuming import MAX_UNACKNOWLEDGED_BYTES, Conversation

LONG = 3600.0


def feed(side, frame):
    """Let a side take a frame; return the messages that are new to it."""
    return [(header["t"], payload) for header, payload in FrameDecoder().feed(frame) if side.take(header, payload)]


@given(st.lists(st.sampled_from(["say", "answer", "deliver", "cut"]), max_size=60))
def test_each_message_arrives_once_and_in_order_however_often_the_link_is_cut(steps):
    sides = [Conversation(1 << 20), Conversation(1 << 20)]
    ways, taken, sent = [[], []], [[], []], [[], []]

    def connect():
        for side, way, other in zip(sides, ways, reversed(sides), strict=True):
            way.clear()  # what was on its way is lost
            side.connected(way.append, other.received)

    def deliver():
        for index in (0, 1):
            for frame in ways[index]:
                taken[1 - index] += feed(sides[1 - index], frame)
            ways[index].clear()

    connect()
    for step in steps:
        if step == "cut":
            connect()
        elif step == "deliver":
            deliver()
        else:
            index = int(step == "answer")
            message = (f"m{len(sent[index])}", b"x" * len(sent[index]))
            sent[index].append(message)
            sides[index].send({"t": message[0]}, message[1])
    connect()
    deliver()
    assert [taken[1], taken[0]] == sent
    for side in sides:
        side.acknowledge()
    deliver()
    assert [side.kept_bytes for side in sides] == [0, 0]


def test_whatever_is_sent_acknowledges_and_only_a_flood_is_acknowledged_by_itself():
    node, head = Conversation(1 << 30), Conversation(1 << 30)
    frames = []
    node.connected(frames.append, 0)
    head.connected(frames.append, 0)
    head.acknowledge()
    assert not head.is_due(LONG)
    assert head.is_due(0.0)
    node.send({"t": "out"}, b"a line")
    assert feed(head, frames.pop()) == [("out", b"a line")]
    assert not head.is_due(LONG)
    head.send({"t": "in"})
    feed(node, frames.pop())
    assert node.kept_bytes == 0
    node.send({"t": "out"}, b"x" * MAX_UNACKNOWLEDGED_BYTES)
    feed(head, frames.pop())
    assert head.is_due(LONG)
    head.acknowledge()
    assert not head.is_due(LONG)
