"""All routes of the API, in the order of docs/api.md; the router and the OpenAPI document use this table."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from jupyter_dist.server.http.page.channel import ChannelHandler
from jupyter_dist.server.http.rest.curves import CurvesDownloadHandler, CurvesHandler
from jupyter_dist.server.http.rest.differences import CompareHandler, DriftHandler, VariablesHandler
from jupyter_dist.server.http.rest.executions import (
    CommsHandler,
    CompleteHandler,
    DebugHandler,
    ExecutionHandler,
    ExecutionsHandler,
    ExtendHandler,
    HistoryHandler,
    InputHandler,
    InspectHandler,
    ScriptHandler,
)
from jupyter_dist.server.http.rest.groups import (
    EmptyCacheHandler,
    GroupHandler,
    GroupsHandler,
    InterruptHandler,
    KillHandler,
    MemoryHandler,
    OwnersHandler,
    ReformHandler,
    ReplaceHandler,
    RestartHandler,
    SamplesHandler,
    StacksHandler,
)
from jupyter_dist.server.http.rest.logs import LogDownloadHandler, LogHandler
from jupyter_dist.server.http.rest.machine import (
    DevicesHandler,
    EnvironmentsHandler,
    LaunchersHandler,
    OpenApiHandler,
    PreparedHandler,
    RootHandler,
    WarmHandler,
)
from jupyter_dist.server.http.rest.profiles import TraceHandler

from .base import NotFoundHandler
from .operations import Route

PREFIX = "jupyter-dist/api"

ROUTES: tuple[Route, ...] = (
    Route("", RootHandler),
    Route("openapi.json", OpenApiHandler, {"routes": lambda: ROUTES}),
    Route("environments", EnvironmentsHandler),
    Route("environments/{name}/warm", WarmHandler),
    Route("devices", DevicesHandler),
    Route("launchers", LaunchersHandler),
    Route("prepared", PreparedHandler),
    Route("groups", GroupsHandler),
    Route("groups/{group}", GroupHandler),
    Route("groups/{group}/owners", OwnersHandler),
    Route("groups/{group}/interrupt", InterruptHandler),
    Route("groups/{group}/restart", RestartHandler),
    Route("groups/{group}/replace", ReplaceHandler),
    Route("groups/{group}/reform", ReformHandler),
    Route("groups/{group}/ranks/{rank}/kill", KillHandler),
    Route("groups/{group}/ranks/{rank}/complete", CompleteHandler),
    Route("groups/{group}/ranks/{rank}/inspect", InspectHandler),
    Route("groups/{group}/ranks/{rank}/comms", CommsHandler),
    Route("groups/{group}/debug", DebugHandler),
    Route("groups/{group}/empty-cache", EmptyCacheHandler),
    Route("groups/{group}/memory", MemoryHandler),
    Route("groups/{group}/samples", SamplesHandler),
    Route("groups/{group}/stacks", StacksHandler),
    Route("groups/{group}/variables", VariablesHandler),
    Route("groups/{group}/compare", CompareHandler),
    Route("groups/{group}/drift", DriftHandler),
    Route("groups/{group}/executions", ExecutionsHandler),
    Route("groups/{group}/executions/{execution}", ExecutionHandler),
    Route("groups/{group}/executions/{execution}/input", InputHandler),
    Route("groups/{group}/executions/{execution}/extend", ExtendHandler),
    Route("groups/{group}/executions/{execution}/curves", CurvesHandler),
    Route("groups/{group}/executions/{execution}/curves/download", CurvesDownloadHandler),
    Route("groups/{group}/executions/{execution}/trace", TraceHandler),
    Route("groups/{group}/history", HistoryHandler),
    Route("groups/{group}/script", ScriptHandler),
    Route("groups/{group}/ranks/{rank}/log", LogHandler),
    Route("groups/{group}/ranks/{rank}/log/download", LogDownloadHandler),
    Route("channel", ChannelHandler),
)


@dataclass(frozen=True)
class Host:
    """What serves our handlers: the bases that authenticate a request, after ours in the order of bases."""

    rest: tuple[type, ...]
    channel: tuple[type, ...]

    def handler(self, ours: type) -> type:
        """Return our handler as this host serves it."""
        return _hosted(ours, self.channel if ours is ChannelHandler else self.rest)


@functools.cache
def _hosted(ours: type, bases: tuple[type, ...]) -> type:
    return type(ours.__name__, (ours, *bases), {"__module__": ours.__module__, "__doc__": ours.__doc__})


def tornado_routes(host: Host) -> list[Any]:
    """Return the routes for a tornado application; other URLs below the prefix get an error in our format, too."""
    routes: list[Any] = [
        (f"/{PREFIX}/{route.pattern()}", host.handler(route.handler), route.arguments) for route in ROUTES
    ]
    return [*routes, (f"/{PREFIX}(?:/.*)?", host.handler(NotFoundHandler))]
