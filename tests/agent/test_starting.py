"""Starts that fail, in a group whose ranks are channels without processes: what comes when is up to the test."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections import Counter

import pytest
from waits import PATIENCE, until_async

from jupyter_dist.agent.group.group import STARTS_AT_ONCE, AgentGroup
from jupyter_dist.agent.group.starts import GroupStarts
from jupyter_dist.agent.processes import ending
from jupyter_dist.agent.processes.death import Ending
from jupyter_dist.agent.processes.starters import LocalStarter
from jupyter_dist.agent.processes.starting import zygote
from jupyter_dist.agent.processes.starting.process import ProcessHandle
from jupyter_dist.agent.processes.starting.startmethod import Preparing, StartMethod
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.wire.specs import GroupSpec
from jupyter_dist.system.limits import within
from jupyter_dist.transport.frames import encode_frame

NO_PID = 1 << 30  # more than any process has


@pytest.fixture(autouse=True)
def _no_processes_to_wait_for(monkeypatch):
    monkeypatch.setattr(ending, "DIE_SECONDS", 0.0)


class Channels:
    """Starts no process. The test has the ranks' ends of their channels."""

    def __init__(self) -> None:
        self.held = contextlib.ExitStack()
        self.error: Exception | None = None
        self.ready = (0, 1)  # those that say so

    is_lost = False

    async def prepare(self, _): ...

    async def settle(self): ...

    async def start(self, spec, fds):
        if self.error is not None:
            raise self.error
        end = self.held.enter_context(socket.socket(fileno=os.dup(fds.channel)))
        if spec.rank in self.ready:
            end.sendall(encode_frame({"t": "ready"}))
        return ProcessHandle(NO_PID + spec.rank, 0)


@contextlib.asynccontextmanager
async def a_group(tmp_path, channels):
    spec = GroupSpec(group_id="g-1", name="g", world_size=2, accelerator="cpu", backend="gloo", cwd=str(tmp_path))
    group = AgentGroup(spec, tmp_path, lambda: None, lambda: None, lambda _: None)
    group.prepare()
    with channels.held:
        try:
            yield group
        finally:
            for rank in group.ranks:
                rank.release()
            group.close()


def a_start(group, channels, failed=None):
    """Begin the first start of the group; errors are appended to `failed`."""
    starts = GroupStarts(group, LocalStarter(channels), [].append if failed is None else failed.append)
    starts.start()
    return starts


@contextlib.asynccontextmanager
async def a_group_without_rank_1(tmp_path, channels):
    async with a_group(tmp_path, channels) as group:
        starts = a_start(group, channels)
        await starts.work
        await group.process_exited(ProcessHandle(NO_PID + 1, 0), Ending(1, None))
        assert group.state == "degraded"
        yield group, starts


class EndsAtOnce(Channels):
    """Reports the end of rank 1 before whoever waits for its start continues."""

    def __init__(self) -> None:
        super().__init__()
        self.group: AgentGroup

    async def start(self, spec, fds):
        handle = await super().start(spec, fds)
        if spec.rank == 1:
            await self.group.process_exited(handle, Ending(7, None))
        return handle


async def test_ranks_are_started_on_all_nodes_at_a_time_and_a_few_on_each(tmp_path):
    words = {"group_id": "g-1", "name": "g", "accelerator": "cpu", "backend": "gloo", "cwd": str(tmp_path)}
    spec = GroupSpec(**words, world_size=60, launcher="external", ranks_per_node=[20, 20, 20])
    group = AgentGroup(spec, tmp_path, lambda: None, lambda: None, lambda _: None)
    group.prepare()
    begun, may_end = Counter(), asyncio.Event()

    class Slow:
        async def start(self, spec):
            begun[spec.node] += 1
            await may_end.wait()
            raise JupyterDistError("start_failed", "No more.")

    start = asyncio.ensure_future(group.start_ranks(Slow(), group.ranks))
    await until_async(lambda: begun.total() >= 3 * STARTS_AT_ONCE)
    for _ in range(3):
        await asyncio.sleep(0)
    assert begun == dict.fromkeys(range(3), STARTS_AT_ONCE)
    may_end.set()
    with pytest.raises(JupyterDistError, match="No more"):
        await start
    group.close()


@pytest.mark.parametrize("ready", [(0,), (0, 1)])
async def test_a_rank_that_ends_before_its_start_is_known_fails_the_start_and_is_named(tmp_path, ready):
    """The zygote's reports of a rank's birth and of its end may be read together."""
    channels = EndsAtOnce()
    channels.ready = ready
    async with a_group(tmp_path, channels) as group:
        channels.group = group
        failed: list[JupyterDistError] = []
        await within(PATIENCE, a_start(group, channels, failed).work)
        assert [(error.code, error.message) for error in failed] == [
            ("start_failed", "Rank 1 exited with code 7 while the group started.")
        ]
        assert group.state == "dead"
        assert [rank.exit and rank.exit["code"] for rank in group.ranks] == [None, 7]
        assert [rank.state for rank in group.ranks] == ["dead", "dead"]


async def test_no_rank_of_a_group_that_cannot_be_started_is_shown_as_starting(tmp_path):
    channels = Channels()
    async with a_group(tmp_path, channels) as group:
        channels.error = JupyterDistError("start_failed", "Node 1 has not joined.")
        failed: list[JupyterDistError] = []
        await within(PATIENCE, a_start(group, channels, failed).work)
        assert ([error.message for error in failed], group.state) == (["Node 1 has not joined."], "dead")
        assert [(rank.state, rank.exit["reason"]) for rank in group.ranks] == 2 * [("dead", "could not be started")]


async def test_a_dead_rank_whose_successor_cannot_be_started_stays_dead_and_the_others_continue(tmp_path):
    channels = Channels()
    async with a_group_without_rank_1(tmp_path, channels) as (group, starts):
        channels.error = JupyterDistError("start_failed", "There are no processes left.")
        starts.replace_dead()
        assert (group.state, group.process_group.may_begin) == ("restarting", False)
        for refused in (starts.replace_dead, starts.restart):
            with pytest.raises(JupyterDistError, match="restarting"):
                refused()
        await within(PATIENCE, starts.work)
        assert group.state == "degraded"
        assert group.note == "Rank 1 could not be replaced: There are no processes left."
        assert [rank.state for rank in group.ranks] == ["idle", "dead"]
        assert group.ranks[1].exit["reason"] == "could not be started"
        assert group.process_group.may_begin


async def test_after_an_internal_error_the_other_ranks_continue_and_nothing_waits_for_new_ones(tmp_path):
    channels = Channels()
    async with a_group_without_rank_1(tmp_path, channels) as (group, starts):
        channels.error = ValueError("a bug")
        starts.replace_dead()
        await within(PATIENCE, starts.work)
        assert group.note == "Rank 1 could not be replaced: ValueError('a bug')"
        assert (group.state, group.process_group.may_begin) == ("degraded", True)
        await until_async(lambda: not [task for task in asyncio.all_tasks() if task.get_name() == "rejoin"])


async def test_a_zygote_that_is_killed_before_it_has_imported_is_replaced_twice(monkeypatch):
    monkeypatch.setattr(zygote, "_forked_zygote", lambda: None)

    async def on_exit(*_): ...

    method = StartMethod([], on_exit)
    try:
        (first,) = method.children()
        os.kill(first, signal.SIGKILL)  # before ranks are asked for
        preparing = asyncio.create_task(method.prepare(Preparing(PATIENCE)))
        await until_async(lambda: method.children() != {first})
        (second,) = method.children()
        os.kill(second, signal.SIGKILL)  # meanwhile
        await preparing
        assert not method.children() & {first, second}
        assert not method.is_lost
    finally:
        await method.stop()
