"""A group that was shut down leaves nothing in the server's memory: not for its start's key, not for open pages."""

import gc
import weakref

import pytest
from pages import page_of
from waits import until_async

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.groups.resolve import WantedGroup

KEY = "the-key-of-a-start"
WANTED = WantedGroup(name="kept", num_ranks=1)


@pytest.fixture
def manager(api, jp_serverapp):
    """That of the server of `api`."""
    return jp_serverapp.extension_manager.extension_points["jupyter_dist"].app.manager


async def started(manager, api):
    """A group that was started with a key and ran a cell: only a weak reference to it, its id, and the cell."""
    group = await manager.start(WANTED, KEY)
    assert await manager.start(WANTED, KEY) is group
    await api.settled("kept")
    view = await api.run("kept", "print('hello')")
    return weakref.ref(group), group.id, view["execution"]["id"]


async def is_gone(group):
    def gone():
        gc.collect()
        return group() is None

    await until_async(gone, lambda: [type(holder) for holder in gc.get_referrers(group())])


@pytest.mark.parametrize("given", ["name", "id"])
@pytest.mark.parametrize("leaves", [False, True], ids=["stays", "unsubscribes"])
async def test_a_group_that_was_shut_down_is_not_kept_for_its_key_or_a_page(manager, api, given, leaves, nothing_left):
    group, group_id, execution = await started(manager, api)
    about = "kept" if given == "name" else group_id
    topics = [
        {"topic": "execution", "group": about, "execution": execution},
        {"topic": "log", "group": about, "rank": 0},
        {"topic": "memory", "group": about},
        {"topic": "comms", "group": about},
    ]
    async with page_of(manager) as (page, sent):
        for topic in topics:
            await page.handle({"type": "subscribe", **topic})
        await until_async(lambda: {"execution", "log", "memory", "comms"} <= {message["type"] for message in sent})
        await api.ask("DELETE", "groups/kept")
        if leaves:
            for topic in topics:
                await page.handle({"type": "unsubscribe", **topic})
        await until_async(lambda: not page._subscriptions)
        await is_gone(group)
        assert "error" not in [message["type"] for message in sent]

    # The key is known, and starts no second group.
    with pytest.raises(JupyterDistError) as raised:
        await manager.start(WANTED, KEY)
    assert raised.value.code == "unknown_group"
    assert manager.all() == []
    await nothing_left()


async def test_a_page_that_reads_late_has_the_end_of_a_cell_whose_group_is_shut_down(manager, api):
    await started(manager, api)
    async with page_of(manager) as (page, sent):
        cell = await api.submit("kept", "import time; print('begun', flush=True); time.sleep(1000)")
        await page.handle({"type": "subscribe", "topic": "execution", "group": "kept", "execution": cell})
        await until_async(lambda: "begun" in str([message for message in sent if message["type"] == "view"]))
        page.reads.clear()
        await api.ask("DELETE", "groups/kept")
        page.reads.set()
        await until_async(lambda: not page._subscriptions)
        last = [message["execution"] for message in sent if message["type"] == "execution"][-1]
        assert last["ended_at"] is not None
