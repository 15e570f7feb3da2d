"""Threads that print at the same time, and finalizers, which print in any of them: all text comes, and in order."""

import contextlib
import gc
import socket
import threading

import pytest
from waits import PATIENCE, until

from jupyter_dist.rank.output.outbox import BATCH_BYTES, Outbox
from jupyter_dist.rank.output.streams import Streams
from jupyter_dist.rank.output.wire import MAX_WAITING_BYTES, FrameSender
from jupyter_dist.transport.frames import FrameDecoder


class Parts:
    """What a rank writes with, its side thread, and what the agent has read."""

    def __init__(self, agent, channel):
        self.wire = FrameSender(channel)
        self.outbox = Outbox(self.wire)
        self.streams = Streams(self.outbox, lambda: None)
        self.outbox.busy = True
        self.streams.stdout.reconfigure(write_through=False)
        self.text = {"stdout": b"", "stderr": b""}
        self.is_ended = threading.Event()
        self._agent = agent
        self._threads = []

    def start(self, run):
        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def side(self, first=lambda: None):
        """As rank/side_thread.py does."""
        self.wire.side_thread = threading.get_ident()
        first()
        while not self.is_ended.wait(0.01):
            self.streams.flush(wait=False)
            self.outbox.flush_on_timer()
            self.wire.send()

    def read(self):
        """As the agent does."""
        self._agent.settimeout(0.1)
        decoder = FrameDecoder()
        while not self.is_ended.is_set():
            with contextlib.suppress(TimeoutError):
                for header, payload in decoder.feed(self._agent.recv(1 << 20)):
                    self.text[header["name"]] += payload

    def end(self):
        self.is_ended.set()
        for thread in self._threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in self._threads)


@pytest.fixture
def parts():
    agent, channel = socket.socketpair()
    with agent, channel:
        parts = Parts(agent, channel)
        yield parts
        parts.end()


def test_a_finalizer_may_print_in_the_side_thread_while_another_one_waits_for_room(parts):
    lock = threading.Lock()  # as logging has one for each handler

    class Cyclic:
        def __del__(self):
            print("finalized", file=parts.streams.stderr)
            with lock:
                print("and logged", file=parts.streams.stderr)

    def flood():
        with lock:
            print("x" * 2 * MAX_WAITING_BYTES, file=parts.streams.stdout)

    def finalize():
        made = Cyclic()
        made.itself = made
        del made
        until(parts.wire._is_full)
        gc.collect()

    parts.start(lambda: parts.side(finalize))
    parts.start(flood)
    until(parts.wire._is_full)
    parts.start(parts.read)
    until(lambda: parts.text["stderr"].count(b"\n") == 2 and parts.text["stdout"].endswith(b"\n"))
    assert parts.text["stderr"] == b"finalized\nand logged\n"
    assert len(parts.text["stdout"]) == 2 * MAX_WAITING_BYTES + 1


@pytest.mark.parametrize("is_side", [True, False])
def test_a_finalizer_may_print_while_its_thread_moves_text_and_another_one_flushes(parts, is_side):
    is_moving, is_flushing = threading.Event(), threading.Event()
    put = parts.wire.put

    def put_and_finalize(frame):
        put(frame)
        if not is_moving.is_set():
            is_moving.set()
            assert is_flushing.wait(PATIENCE)
            print("finalized", file=parts.streams.stderr)

    def flush():
        assert is_moving.wait(PATIENCE)
        parts.streams.stdout.buffer._before = is_flushing.set  # it has `order`
        print("y" * BATCH_BYTES, file=parts.streams.stdout)
        parts.streams.flush(wait=not is_side)

    parts.wire.put = put_and_finalize
    parts.start(parts.read)
    parts.start((lambda: parts.side(flush)) if is_side else flush)
    if not is_side:
        parts.start(lambda: is_flushing.wait(PATIENCE) and parts.side())
    parts.start(lambda: parts.outbox.write("stdout", b"x" * BATCH_BYTES))
    until(lambda: parts.text["stderr"] == b"finalized\n" and parts.text["stdout"].endswith(b"y\n"))
    assert parts.text["stdout"] == b"x" * BATCH_BYTES + b"y" * BATCH_BYTES + b"\n"


def test_the_side_thread_waits_for_no_lock(parts):
    """It would not send, nor take an interrupt; a finalizer may keep the lock for as long as it likes."""
    has_gone_on = threading.Event()

    def first():
        print("first", file=parts.streams.stdout)
        parts.streams.flush(wait=False)
        parts.outbox.flush_on_timer()
        parts.outbox.send({"t": "stream", "name": "stdout"}, b"then a frame\n")
        print("last", file=parts.streams.stdout)
        has_gone_on.set()

    with parts.outbox._lock:
        parts.start(lambda: parts.side(first))
        assert has_gone_on.wait(PATIENCE)
    parts.start(parts.read)
    until(lambda: parts.text["stdout"] == b"first\nthen a frame\nlast\n", lambda: parts.text)


def test_a_finalizer_may_print_more_than_there_is_room_for_while_its_thread_sends(parts):
    send, flooded = parts.wire._send_frames, []

    def send_and_finalize():
        if threading.get_ident() != parts.wire.side_thread and not flooded:
            flooded.append(True)
            print("x" * 2 * MAX_WAITING_BYTES, file=parts.streams.stdout)
        send()

    parts.wire._send_frames = send_and_finalize
    parts.start(parts.side)
    parts.start(parts.read)
    parts.start(lambda: parts.outbox.write("stderr", b"first\n"))
    until(lambda: parts.text["stdout"].endswith(b"x\n"))


def test_a_flush_that_is_held_up_is_not_overtaken():
    agent, channel = socket.socketpair()
    outbox = Outbox(FrameSender(channel))
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
