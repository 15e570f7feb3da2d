"""An agent that fails or is silent once: the server attaches again, and pages get what they wait for."""

import contextlib
import os
import signal
import time

import pytest
from pages import page_of
from smallagent import SmallAgent
from waits import until_async

from jupyter_dist.server.devices.reader import DeviceReader
from jupyter_dist.server.environments.environments import Environments
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.groups.manager import GroupManager
from jupyter_dist.server.groups.resolve import GroupDefaults
from jupyter_dist.server.http.page import subscriptions
from jupyter_dist.server.mirror.link import AgentLink
from jupyter_dist.server.mirror.mirror import GroupMirror
from jupyter_dist.server.spawner.directories import GroupDirectory
from jupyter_dist.server.spawner.local import LocalSpawner

EXECUTION = {"type": "subscribe", "topic": "execution", "group": "small", "execution": "e-small"}


@contextlib.asynccontextmanager
async def following(manager, folder, request, failure):
    with SmallAgent(folder, request, failure) as agent:
        await until_async(lambda: agent.is_ready)
        group = GroupMirror(GroupDirectory(folder), "s-1", manager.notify)
        group.status.take_remains({"spec": {"name": "small", "world_size": 1}})
        group.connect()
        manager._groups[group.id] = ManagedGroup(group)
        try:
            yield agent, group
        finally:
            del manager._groups[group.id]
            await group.detach()


@pytest.fixture
def manager(tmp_path):
    async def no_kernel_specs():
        return {}

    spawner, environments = LocalSpawner(tmp_path / "groups", []), Environments(no_kernel_specs)
    return GroupManager(spawner, environments, DeviceReader(), GroupDefaults(), keep_warm=False, launchers=dict)


def has_attached(group):
    """Whether all that it asks an agent at first has been answered."""
    return group.is_attached and group._connecting.done()


def shown(sent):
    """The text of the cell as a page has it, which may get the beginning of it first."""
    items = [item for message in sent if message["type"] == "view" for item in message["items"]]
    return "".join(item.get("append") or item["output"]["text"] for item in items)


@pytest.mark.parametrize("request_name", ["executions", "follow"])
@pytest.mark.parametrize("failure", ["silent", "internal"])
async def test_a_server_that_could_not_attach_completely_does_it_again(
    manager, tmp_path, monkeypatch, request_name, failure
):
    monkeypatch.setattr(AgentLink.request, "__defaults__", (b"", 0.5, None))
    async with following(manager, tmp_path / "g", request_name, failure) as (agent, group):
        await until_async(lambda: has_attached(group) and agent.asked(request_name) >= 2)
        assert agent.asked("hello") >= 2
        async with page_of(manager) as (page, sent):
            await page.handle(EXECUTION)
            await until_async(lambda: any(message["type"] == "execution" for message in sent))
            agent.prints("live")
            await until_async(lambda: "live\n" in shown(sent))


async def test_a_server_that_misses_a_change_of_a_group_gets_all_of_it_again(manager, tmp_path):
    async with following(manager, tmp_path / "g", "", "") as (agent, group):
        await until_async(lambda: has_attached(group))
        for text, sends, hellos in (("one", True, 1), ("two", True, 1), ("three", False, 1), ("four", True, 2)):
            agent.notes(text, sends=sends)
            if sends:
                await until_async(lambda text=text: group.model()["note"] == text and group.is_attached)
            assert agent.asked("hello") == hellos
        agent.notes("five")
        await until_async(lambda: group.model()["note"] == "five")


async def test_a_page_gets_the_past_of_a_group_whose_agent_is_stopped(manager, tmp_path):
    """It is read from files, so that no agent has to answer."""
    async with following(manager, tmp_path / "g", "none", "silent") as (agent, group):
        await until_async(lambda: has_attached(group))
        agent.prints("before")
        await until_async(lambda: group._seq == 2)
        os.kill(agent.process.pid, signal.SIGSTOP)
        async with page_of(manager) as (page, sent):
            await page.handle(EXECUTION)
            await until_async(lambda: "before\n" in shown(sent), lambda: sent)
            await page.handle({"type": "subscribe", "topic": "log", "group": "small", "rank": 0})
            await until_async(lambda: any(message["type"] == "log" for message in sent))
            records = next(message for message in sent if message["type"] == "log")["records"]
            assert [(record["kind"], record.get("code")) for record in records] == [("begin", "code"), ("stream", None)]
            assert (await group.execution("e-small"))["code"] == "code"
            os.kill(agent.process.pid, signal.SIGCONT)
            agent.prints("after")
            await until_async(lambda: "after\n" in shown(sent), lambda: sent)
            assert "error" not in [message["type"] for message in sent]


async def test_a_page_gets_the_widgets_that_its_agent_could_not_send_at_first(manager, tmp_path):
    async with following(manager, tmp_path / "g", "comms", "timed_out") as (agent, group):
        await until_async(lambda: has_attached(group))
        async with page_of(manager) as (page, sent):
            await page.handle({"type": "subscribe", "topic": "comms", "group": "small"})
            await until_async(lambda: any(message["type"] == "comms" for message in sent))
            assert agent.asked("comms") == 2
            assert "error" not in [message["type"] for message in sent]


async def test_a_page_keeps_the_memory_of_a_group_whose_agent_does_not_answer_now(manager, tmp_path, monkeypatch):
    monkeypatch.setattr(subscriptions, "AGAIN_SECONDS", 1000.0)
    async with following(manager, tmp_path / "g", "watch:2", "timed_out") as (agent, group):  # the first attaches
        await until_async(lambda: has_attached(group))
        async with page_of(manager) as (page, sent):
            await page.handle({"type": "subscribe", "topic": "memory", "group": "small"})
            [subscription] = page._subscriptions.values()
            await until_async(lambda: subscription.due is not None)
            assert list(page._subscriptions.values()) == [subscription]
            await page.handle({"type": "unsubscribe", "topic": "memory", "group": "small"})
            await until_async(lambda: agent.asked("watch") == 3)
            assert "error" not in [message["type"] for message in sent]


async def test_a_page_that_stops_following_memory_waits_for_no_agent_and_is_not_cut_off(manager, tmp_path):
    async with following(manager, tmp_path / "g", "watch:3", "timed_out") as (agent, group):
        await until_async(lambda: has_attached(group))
        async with page_of(manager) as (page, sent):
            await page.handle({"type": "subscribe", "topic": "memory", "group": "small"})
            await until_async(lambda: agent.asked("watch") == 2)
            await page.handle({"type": "unsubscribe", "topic": "memory", "group": "small"})
            await until_async(lambda: agent.asked("watch") == 3)
            await until_async(lambda: not page._beside)
            await page.handle(EXECUTION)
            await until_async(lambda: any(message["type"] == "execution" for message in sent))


async def test_an_agent_is_asked_for_what_pages_watch_whenever_a_server_attaches(manager, tmp_path):
    async with following(manager, tmp_path / "g", "none", "silent") as (agent, group):
        await until_async(lambda: has_attached(group))
        assert agent.watched() == ["0"]  # pages of an earlier server may have watched
        async with page_of(manager) as (page, _):
            await page.handle({"type": "subscribe", "topic": "memory", "group": "small"})
            await until_async(lambda: agent.watched() == ["0", "1"], agent.watched)
            await group.link.close()
            group.connect()
            await until_async(lambda: agent.watched() == ["0", "1", "1"], agent.watched)


def sample(at, resident):
    device = dict.fromkeys(("allocated_bytes", "reserved_bytes", "peak_bytes", "device_used_bytes"))
    return {"sample": {"at": at, "ranks": [{"rank": 0, "resident_bytes": resident, "cpu_percent": 0.0, **device}]}}


async def test_a_page_gets_samples_also_after_the_clock_was_set_back(manager, tmp_path):
    async with following(manager, tmp_path / "g", "none", "silent") as (_, group):
        await until_async(lambda: has_attached(group))
        now = time.time()
        group._on_sample(sample(now, 1), b"")
        async with page_of(manager) as (page, sent):

            def told():
                found = [message["sample"] for message in sent if message["type"] == "memory"]
                return [one["ranks"][0]["resident_bytes"] for one in found]

            await page.handle({"type": "subscribe", "topic": "memory", "group": "small"})
            await until_async(lambda: group._watchers == 1)
            group._on_sample(sample(now + 100, 2), b"")
            await until_async(lambda: told() == [2], told)  # none from before
            group._on_sample(sample(now - 86400, 3), b"")
            await until_async(lambda: told() == [2, 3], told)


async def test_no_news_of_widgets_are_kept_for_a_page_that_does_not_follow_them(manager, tmp_path, monkeypatch):
    monkeypatch.setattr("jupyter_dist.server.http.page.page.MAX_SUBSCRIPTIONS", 1)
    async with following(manager, tmp_path / "g", "none", "silent") as (_, group):
        await until_async(lambda: has_attached(group))
        async with page_of(manager) as (page, sent):
            for given in ("small", group.id):  # a group can be given by either
                await page.handle({"type": "subscribe", "topic": "comms", "group": given})
                await until_async(lambda: len(group.comms._followers) == 1)
                await page.handle({"type": "unsubscribe", "topic": "comms", "group": "small"})
                await until_async(lambda: not group.comms._followers)
            await page.handle({"type": "subscribe", "topic": "devices"})
            await page.handle({"type": "subscribe", "topic": "comms", "group": "small"})  # one too many
            await until_async(lambda: any(message["type"] == "error" for message in sent))
            await until_async(lambda: not group.comms._followers)


async def test_what_waits_for_one_agent_holds_up_nothing_else(manager, tmp_path):
    async with following(manager, tmp_path / "g", "comms", "silent") as (agent, group):
        await until_async(lambda: has_attached(group))
        async with page_of(manager) as (page, sent):
            await page.handle({"type": "subscribe", "topic": "comms", "group": "small"})
            await until_async(lambda: agent.asked("comms"))
            await page.handle({"type": "subscribe", "topic": "groups"})
            await until_async(lambda: any(message["type"] == "changes" for message in sent))
            group.status.update(note="told meanwhile")
            manager.notify(("groups",))
            await until_async(
                lambda: any(
                    change["fields"].get("note") == "told meanwhile"
                    for message in sent
                    if message["type"] == "changes"
                    for change in message["changes"]
                )
            )
            await page.handle({"type": "subscribe", "topic": "devices"})
            await until_async(lambda: any(message["type"] == "devices" for message in sent))
            assert "comms" not in [message["type"] for message in sent]
            assert agent.asked("comms") == 1
