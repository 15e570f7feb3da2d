"""The side thread flushes on a timer while the main thread prints: the text must stay in order."""

import socket
import threading

from waits import PATIENCE

from jupyter_dist.rank.output.outbox import BATCH_BYTES, Outbox
from jupyter_dist.rank.output.streams import Streams
from jupyter_dist.rank.output.wire import Wire
from jupyter_dist.transport.frames import FrameDecoder


def test_a_flush_that_is_held_up_is_not_overtaken():
    agent, channel = socket.socketpair()
    outbox = Outbox(Wire(channel))
    streams = Streams(outbox, lambda: None)
    outbox.busy = True
    streams.stdout.reconfigure(write_through=False)
    is_flushing, printed = threading.Event(), threading.Event()

    def be_held_up():
        if threading.current_thread() is side:
            is_flushing.set()
            printed.wait(0.2)  # as long as the processor may be taken away from a thread

    streams.stdout.buffer._before = be_held_up
    side = threading.Thread(target=streams.flush, args=(False,))
    print("first", file=streams.stdout)
    side.start()
    assert is_flushing.wait(PATIENCE)
    print("second" * (BATCH_BYTES // 6 + 1), file=streams.stdout)
    printed.set()
    side.join(PATIENCE)
    assert not side.is_alive()
    streams.flush()
    outbox.flush_text()
    with agent, channel:
        agent.settimeout(PATIENCE)
        text, decoder = b"", FrameDecoder()
        while b"second" not in text:
            text += b"".join(payload for _, payload in decoder.feed(agent.recv(1 << 20)))
    assert text.startswith(b"first\nsecond")
