"""What keeps a start fast does not make one fail, and a name means one group."""

import asyncio
import os
import signal

import pytest
from waits import until_async


@pytest.fixture
def manager(jp_serverapp):
    return jp_serverapp.extension_manager.extension_points["jupyter_dist"].app.manager


async def spare_of(manager):
    """The agent that waits."""
    await manager._warm.warm(await manager.environments.get(None, None))
    await until_async(manager._warm.agents)
    return manager._warm.agents()[0]


async def test_a_spare_that_is_broken_is_passed_over(api, manager, nothing_left):
    for broken in (None, signal.SIGKILL, signal.SIGSTOP):
        agent = await spare_of(manager)
        if broken is not None:
            os.kill(agent, broken)
        group = await api.start(2, name="g")
        assert (group["state"], group["error"]) == ("ready", None)
        used = manager.get("g").status.fields["agent_pid"]
        assert (used == agent) == (broken is None)
        assert (await api.run("g", "print(world_size)"))["execution"]["state"] == "ok"
        await api.ask("DELETE", "groups/g")
    await nothing_left()


async def test_a_start_takes_the_place_of_a_dead_group_of_its_name(api, manager, nothing_left):
    async def ids():
        listed = (await api.ask("GET", "groups"))["groups"]
        return [group["id"] for group in listed if group["name"] == "g"]

    dead = await api.start(2, name="g")
    for _ in range(2):
        for rank in dead["ranks"]:
            os.kill(rank["pid"], signal.SIGKILL)
        await api.until(dead["id"], lambda group: group["state"] == "dead")
        manager._starting["g"] = asyncio.Event()  # a start of this name is under way
        status, error = await api.refused("POST", f"groups/{dead['id']}/restart")
        assert (status, error["code"]) == (409, "name_taken")
        manager._starting.pop("g").set()
        group = await api.start(2, name="g")
        assert await ids() == [group["id"]]
        assert (await api.run("g", "print(rank)"))["execution"]["state"] == "ok"
        dead = group
    await api.ask("DELETE", "groups/g")
    await nothing_left()
