"""What a rank has said before its end, read by an agent that is held up: a real channel, and a real journal."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
import time

from jupyter_dist.agent.processes.death import Ending
from jupyter_dist.agent.processes.localchannel import LAST_SECONDS, LocalChannel
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.processes.starting.environment import rank_spec
from jupyter_dist.agent.processes.starting.process import ProcessHandle
from jupyter_dist.journal.reader import JournalCursor
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.protocol.wire.specs import GroupSpec
from jupyter_dist.transport.frames import encode_frame
from jupyter_dist.transport.stream import READ_BYTES


class Listener:
    """The group, for a rank that has ended."""

    def ranks_changed(self) -> None: ...

    def rank_died(self, _: RankProcess) -> None: ...


def fill(channel: socket.socket) -> int:
    """Say as much as the channel holds; return how many lines of it are whole."""
    for said in itertools.count():
        frame = encode_frame({"t": "stream", "name": "stdout", "execution_id": "e-1"}, b"x" * 30_000 + b"\n")
        try:
            if channel.send(frame) < len(frame):
                return said
        except BlockingIOError:
            return said
    raise AssertionError


async def test_all_that_the_channel_held_is_kept_if_the_agent_was_held_up_at_the_end(tmp_path):
    """A descendant of the rank holds its channel, so there is no end. Hosts may have larger buffers than the default."""
    journal = JournalWriter(tmp_path / "journal")
    spec = GroupSpec("g-1", "g", 1, "cpu", "gloo", str(tmp_path))
    rank = RankProcess(rank_spec(spec, 0, "", 0, ("127.0.0.1", 1)), journal, Listener())
    channel = LocalChannel()
    own_end, *pipes = channel.open()
    for end in pipes:
        os.close(end)
    with contextlib.closing(journal), socket.socket(fileno=own_end) as end:
        await channel.connect()
        rank.started(ProcessHandle(1 << 30, 0), channel)
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, READ_BYTES)
        num_lines = fill(end)
        assert num_lines * 30_000 > READ_BYTES
        asyncio.get_running_loop().call_soon(time.sleep, 2 * LAST_SECONDS)
        await rank.ended(Ending(0, None))
    with contextlib.closing(JournalCursor(tmp_path / "journal")) as cursor:
        kept = [record.payload for record in cursor.read() if record.header["kind"] == "stream"]
    assert b"".join(kept).count(b"\n") == num_lines
