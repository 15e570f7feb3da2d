"""A Jupyter server for asyncio programs: finding it, and its groups."""

from __future__ import annotations

import asyncio
from typing import Any

from jupyter_dist.client.connection.channel import Channel
from jupyter_dist.client.connection.http import Api
from jupyter_dist.client.servers import PrivateServer, Server, running_servers, server_of
from jupyter_dist.objects.segments import Segments
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.states import GONE_GROUP_STATES

from .group import AsyncGroup

PROBE_SECONDS = 5.0


class AsyncClient:
    """One Jupyter server's groups."""

    def __init__(self, server: Server, private: PrivateServer | None = None) -> None:
        self.server = server
        self.api = Api(server)
        self.channel = Channel(self.api)
        self.segments = Segments()
        self._private = private

    @classmethod
    async def connect(cls, url: str | None = None, token: str | None = None, *, private: bool = True) -> AsyncClient:
        """The server at `url`, else this user's running one, else a private one of this process.

        Raises:
            JupyterDistError: `server_gone`, `forbidden`, `not_found`, `no_server`.
        """
        if url is not None:
            client = cls(server_of(url, token))
            await client.api.ask("GET", timeout_seconds=PROBE_SECONDS)
            return client
        for server in running_servers():
            client = cls(server)
            try:
                await client.api.ask("GET", timeout_seconds=PROBE_SECONDS)
                return client
            except JupyterDistError:  # it has no jupyter_dist, or its token is elsewhere
                client.api.close()
        if not private:
            message = "You have no running Jupyter server with jupyter_dist."
            raise JupyterDistError("no_server", message, "Start one: jupyter lab or jupyter server.")
        started = await PrivateServer.start()
        return cls(started.server, started)

    @property
    def is_private(self) -> bool:
        """Whether the server belongs to this process."""
        return self._private is not None

    async def groups(self) -> list[AsyncGroup]:
        """Return all groups, oldest first, including dead ones, whose logs can still be read."""
        answer = await self.api.ask("GET", "groups")
        return [AsyncGroup(self, model) for model in answer["groups"]]

    async def start(self, name: str | None = None, *, wait: bool = True, **fields: Any) -> AsyncGroup:
        """Start a group with the fields of StartRequest (docs/reference/http.md); returns when its ranks are ready."""
        body = {key: value for key, value in {"name": name, **fields}.items() if value is not None}
        group = AsyncGroup(self, await self.api.ask_once("groups", body=body))
        return await group.ready() if wait else group

    async def attach(self, name: str | None = None) -> AsyncGroup:
        """Return the group with that name or id; without one, the only running one.

        Raises:
            JupyterDistError: `unknown_group`, listing the running groups.
        """
        if name is not None:
            return AsyncGroup(self, await self.api.ask("GET", "groups", name))
        living = [group for group in await self.groups() if group.model["state"] not in GONE_GROUP_STATES]
        if len(living) == 1:
            return living[0]
        if not living:
            raise JupyterDistError(
                "unknown_group",
                "No group is running.",
                "Start one: Group.start(num_ranks=2), or jupyter dist start -n 2.",
            )
        names = ", ".join(f"'{group.name}'" for group in living)
        raise JupyterDistError("unknown_group", f"{len(living)} groups are running.", f"Name one of: {names}.")

    async def close(self) -> None:
        """Close the connection. A private server ends; groups keep running. Idempotent."""
        self.segments.close()
        await self.channel.close()
        self.api.close()
        if self._private is not None:
            await asyncio.to_thread(self._private.close)
