"""The client's reader of a WebSocket: whatever comes, who waits is told."""

import asyncio

import pytest
from waits import PATIENCE

from jupyter_dist.client import JupyterDistError
from jupyter_dist.client.connection.channel import Channel
from jupyter_dist.client.connection.feeds import ExecutionFeed
from jupyter_dist.client.connection.http import Api
from jupyter_dist.client.servers import Server


class Socket:
    """Of a server that says what no version of ours does."""

    close_code = None

    async def read_message(self):
        return "no JSON"

    def write_message(self, message):
        pass

    def close(self):
        pass


async def test_a_message_that_cannot_be_understood_ends_every_wait(monkeypatch):
    channel = Channel(Api(Server("http://127.0.0.1:9/", "")))

    async def connected():
        return Socket()

    monkeypatch.setattr(channel, "_connected", connected)
    feed = ExecutionFeed("g-1", {"id": "e-1", "state": "running"})
    async with channel.following(feed):
        await asyncio.wait_for(feed.over.wait(), PATIENCE)
    assert isinstance(feed.error, JupyterDistError)
    assert "cannot be understood: JSONDecodeError" in feed.error.message
    await channel.close()


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_a_name_is_never_another_path(name):
    api = Api(Server("http://127.0.0.1:9/", ""))
    with pytest.raises(JupyterDistError, match="is not a valid id or name") as caught:
        await api.ask("DELETE", "groups", "g-1", "executions", name)
    assert caught.value.code == "bad_request"
