"""A Jupyter server for asyncio programs: finding it, and its groups."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_core.paths import jupyter_runtime_dir

from jupyter_dist.client.answers.keywords import StartOptions
from jupyter_dist.client.connection.channel import Channel
from jupyter_dist.client.connection.finding import first_usable
from jupyter_dist.client.connection.http import Api
from jupyter_dist.client.servers import (
    Server,
    attendance,
    own_environ,
    own_process,
    private_server,
    running_servers,
    server_of,
)
from jupyter_dist.objects.segments import Segments
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.parts import of_part
from jupyter_dist.protocol.schemas import beginnings
from jupyter_dist.protocol.states import GONE_GROUP_STATES
from jupyter_dist.protocol.wire import requests
from jupyter_dist.system.files.places import may_have_groups

from .arguments import check_names, placed
from .calling import call
from .group import AsyncGroup
from .plain import PlainAsyncClient

if TYPE_CHECKING:
    from typing_extensions import Unpack


FIND_SECONDS = 60.0
NO_SERVER = Server("http://127.0.0.1:0/")  # before a server has been found


@dataclass(frozen=True)
class Beginning:
    """What a new group begins with."""

    options: Mapping[str, Any]  # of the start, for it
    begin: Callable[[AsyncGroup], Awaitable[None]]  # when the ranks are ready


class AsyncClient(PlainAsyncClient):
    """The groups of one Jupyter server. If its URL was not given, the next server is used when it has ended."""

    def __init__(self, server: Server, *, follow: bool = False, start: bool = True, prepare: bool = True) -> None:
        self.api = Api(server, self._next_server if follow else None)
        self._may_start = start
        self._prepares = prepare
        self.channel = Channel(self.api)
        self.segments = Segments()
        self._attended: Path | None = None

    @classmethod
    async def connect(
        cls,
        url: str | None = None,
        token: str | None = None,
        *,
        private: bool = True,
        start: bool = True,
        prepare: bool = True,
    ) -> AsyncClient:
        """Return a client of the server at `url`, else of this user's running server, else of a private one.

        Args:
            url: a server; by default a running server is looked for.
            token: its token; by default from its file or the environment.
            private: whether to use a private server.
            start: whether to start a private server even if there is no group that it could find.
            prepare: whether a server that is started here imports torch at once for the first group (300 MB for 30 s).

        Raises:
            JupyterDistError: `server_gone`, also if a server runs that does not answer; `forbidden`, `not_found`;
                `no_server`; `unknown_group` with `start=False`.
        """
        if url is not None:
            server = server_of(url, token)
            if (found := await first_usable([server])).server is None:
                raise found.errors[server]
            return cls(server)
        found = await first_usable(running_servers())
        if found.server is not None and not (private and found.server.is_private):
            return cls(found.server, follow=private)
        found.raise_for_silent(also_private=not private)
        if not private:
            message = "You have no running Jupyter server with jupyter_dist."
            raise JupyterDistError("no_server", message, "Start one: jupyter lab or jupyter server.")
        client = cls(NO_SERVER, follow=True, start=start, prepare=prepare)
        try:
            await client.api.move_on(NO_SERVER)
        except BaseException:
            client._leave()
            raise
        return client

    @property
    def server(self) -> Server:
        """Return the server that is used now."""
        return self.api.server

    @property
    def is_private(self) -> bool:
        """Whether the server is a private one, which ends some seconds after its last client."""
        return self.server.is_private

    async def _next_server(self) -> Server:
        """Return a server that answers, after the last one was lost; start a private one if there is none."""
        if self._attended is None:
            with contextlib.suppress(OSError):  # private_server raises the reason
                self._attended = attendance.join()  # before the server is looked for, so that it does not end meanwhile
        deadline = time.monotonic() + FIND_SECONDS
        while (server := (found := await first_usable(running_servers())).server) is None:
            found.raise_for_silent(also_private=False)
            if not self._may_start and not may_have_groups(jupyter_runtime_dir()):
                raise no_group()
            given_up = threading.Event()
            try:
                server = await asyncio.to_thread(private_server, prepare=self._prepares, given_up=given_up)
            finally:
                given_up.set()  # Ctrl-C: Python waits for that thread before it ends
            found = await first_usable([server])
            if found.server is not None:
                break
            if time.monotonic() > deadline:
                raise found.errors[server]
        if not server.is_private:
            self._leave()
        return server

    def _leave(self) -> None:
        if self._attended is not None:
            attendance.leave(self._attended)
            self._attended = None

    async def groups(self) -> list[AsyncGroup]:
        """Return all groups, oldest first, including dead ones, whose logs can still be read."""
        answer = await self.api.ask("GET", "groups")
        return [AsyncGroup(self, model) for model in answer["groups"]]

    async def start(
        self,
        name: str | None = None,
        *,
        wait: bool = True,
        grace_seconds: float | None = None,
        **options: Unpack[StartOptions],
    ) -> AsyncGroup:
        """Start a group; returns when its ranks are ready.

        Args:
            name: A name for the group, unique among running groups; by default it is given one.
            wait: Whether to wait until the ranks are ready.
            grace_seconds: End the group that many seconds after this process, however this process ends.
            options: The options of StartOptions (docs/reference/python.md), such as `num_ranks`.
        """
        known = beginnings()
        check_names(options, requests.StartOptions, "name", "wait", "grace_seconds", *known)
        own = {key: value for key, value in options.items() if key not in known}
        wanted = await _wanted_beginnings(self, options)
        for each in wanted:
            own = {**each.options, **own}  # what is given wins
        body = {key: value for key, value in {"name": name, **own}.items() if value is not None}
        if self.is_private:  # the server may have been started by another program, in another folder
            body = placed({**_own_defaults(body), **body}, requests.StartOptions, is_private=True)
        if grace_seconds is not None and self.server.is_local:
            body["owner"] = {**own_process(), "grace_seconds": grace_seconds}
        group = AsyncGroup(self, await self.api.ask_once("groups", body=body))
        if wanted:
            return await _begin(group, wanted)
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
            raise no_group()
        names = ", ".join(f"'{group.name}'" for group in living)
        raise JupyterDistError("unknown_group", f"{len(living)} groups are running.", f"Name one of: {names}.")

    async def _call(
        self,
        name: str,
        *arguments: object,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        return await call(self.api, name, *map(str, arguments), body=body, query=query)

    async def close(self) -> None:
        """Close the connection; pending calls raise `cancelled`. Idempotent.

        Groups keep running; a private server ends soon, if no other client uses it.
        """
        self.segments.close()
        self.api.close()
        await self.channel.close()
        self._leave()


async def _wanted_beginnings(client: AsyncClient, options: Mapping[str, Any]) -> list[Beginning]:
    """Return a Beginning for each argument of a start that has one: a coroutine of the part's module `beginning`."""
    wanted = {name: part for name, (part, _) in beginnings().items() if options.get(name) is not None}
    return [
        await getattr(of_part(part, "beginning"), name)(client, options[name], options) for name, part in wanted.items()
    ]


async def _begin(group: AsyncGroup, wanted: list[Beginning]) -> AsyncGroup:
    """Begin with them; end the group if that fails."""
    try:
        await group.ready()
        for each in wanted:
            await each.begin(group)
    except BaseException:
        with contextlib.suppress(JupyterDistError):
            await group.shutdown()
        raise
    return await group.ready()


def no_group() -> JupyterDistError:
    """Return the error for a call that needs a group when there is none."""
    hint = "Start one: Group.start(num_ranks=2), or jupyter dist start -n 2."
    return JupyterDistError("unknown_group", "No group is running.", hint)


def _own_defaults(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a start whose defaults a server takes from its process, with the values of this process."""
    fields: dict[str, Any] = {"environ": own_environ()}
    if "notebook" not in body:
        fields["cwd"] = "."
    if "environment" not in body and "python" not in body:
        fields["python"] = sys.executable
    return fields
