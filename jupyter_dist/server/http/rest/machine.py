"""REST: versions, this API itself, environments and devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jupyter_dist.protocol import machine, models, requests
from jupyter_dist.protocol.specs import PROTOCOL_VERSION
from jupyter_dist.server.environments.environments import default_environment
from jupyter_dist.server.http.base import DistHandler
from jupyter_dist.server.http.openapi import build_openapi
from jupyter_dist.server.http.operations import Answer, Operation, Route, operation

API_VERSION = 1


class RootHandler(DistHandler):
    """Versions."""

    @operation(
        Operation(
            "Read the versions",
            "read",
            {200: Answer("Versions", models.Versions)},
        )
    )
    async def get(self) -> None:
        """Return the versions."""
        self.answer({"jupyter_dist": self.service.version, "protocol": PROTOCOL_VERSION, "api": API_VERSION})


class OpenApiHandler(DistHandler):
    """The OpenAPI document of this API."""

    def initialize(self, routes: Callable[[], Iterable[Route]] = tuple, **arguments: Any) -> None:
        """Called by tornado; the document describes all routes, including this one."""
        super().initialize(**arguments)
        self._routes = routes

    @operation(Operation("Read this document", "read", {200: Answer("OpenAPI 3.1", dict[str, Any])}))
    async def get(self) -> None:
        """Return this API as OpenAPI 3.1."""
        self.answer(build_openapi(self._routes(), self.url(), self.service.version))


class EnvironmentsHandler(DistHandler):
    """Environments."""

    @operation(
        Operation(
            "List the environments that groups can run in",
            "read",
            {200: Answer("Environments", models.Environments)},
        )
    )
    async def get(self) -> None:
        """List all environments, probed."""
        environments = await self.manager.environments.all()
        shown = [environment.to_dict() for environment in environments]
        self.answer({"environments": shown, "default": default_environment(environments).name})


class WarmHandler(DistHandler):
    """Warms an environment."""

    @operation(
        Operation(
            "Keep an agent with torch imported ready for the next start",
            "write",
            {202: Answer("It is being started, or is already waiting", models.Nothing)},
            body=requests.EmptyRequest,
            errors=("bad_environment",),
        )
    )
    async def post(self, name: str) -> None:
        """Make sure that an agent is waiting."""
        await self.manager.warm(name)
        self.answer({}, 202)


class LaunchersHandler(DistHandler):
    """Launchers."""

    @operation(
        Operation(
            "List what can start the nodes of a group, with what is free",
            "read",
            {200: Answer("Launchers", machine.Launchers)},
        )
    )
    async def get(self) -> None:
        """Ask every launcher whether it can be used here."""
        self.answer({"launchers": await self.manager.launchers.shown()})


class PreparedHandler(DistHandler):
    """What is kept to make the next start faster."""

    @operation(
        Operation(
            "List the processes that are kept to make the next start faster, with their memory",
            "read",
            {200: Answer("Processes", machine.Prepared)},
        )
    )
    async def get(self) -> None:
        """List forkservers and waiting agents."""
        self.answer({"processes": await self.manager.prepared()})


class DevicesHandler(DistHandler):
    """Devices and host."""

    @operation(
        Operation(
            "Read the accelerators and the host",
            "read",
            {200: Answer("Devices and host", machine.Devices)},
        )
    )
    async def get(self) -> None:
        """Read the devices and the host, and how they are used."""
        self.answer(await self.manager.devices.read(self.manager.rank_of_pid))
