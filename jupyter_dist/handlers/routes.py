"""Every address of the API, in the order of docs/api.md. The router and the OpenAPI document are made from it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .base import NotFoundHandler
from .channel import ChannelHandler
from .executions import ExecutionHandler, ExecutionsHandler
from .groups import EmptyCacheHandler, GroupHandler, GroupsHandler, InterruptHandler, MemoryHandler, RestartHandler
from .logs import LogDownloadHandler, LogHandler
from .machine import DevicesHandler, EnvironmentsHandler, OpenApiHandler, RootHandler, WarmHandler

PREFIX = "jupyter-dist/api"

# What may stand for a {parameter}: names and ids of ours, and never a slash.
PARAMETERS = {
    "group": (r"[A-Za-z0-9_.-]{1,60}", "A group's id or name."),
    "execution": (r"[A-Za-z0-9_-]{1,80}", "An execution's id."),
    "rank": (r"[0-9]{1,7}", "A rank."),
    "name": (r"[^/]{1,300}", "An environment's name."),
}


@dataclass(frozen=True)
class Route:
    """A path below the prefix, with {parameters}, and who answers."""

    path: str
    handler: Any

    def pattern(self) -> str:
        """The regular expression for the router."""
        return re.sub(r"\{(\w+)\}", lambda match: f"({PARAMETERS[match[1]][0]})", re.escape(self.path).replace(
            r"\{", "{").replace(r"\}", "}"))


ROUTES = (
    Route("", RootHandler),
    Route("openapi.json", OpenApiHandler),
    Route("environments", EnvironmentsHandler),
    Route("environments/{name}/warm", WarmHandler),
    Route("devices", DevicesHandler),
    Route("groups", GroupsHandler),
    Route("groups/{group}", GroupHandler),
    Route("groups/{group}/interrupt", InterruptHandler),
    Route("groups/{group}/restart", RestartHandler),
    Route("groups/{group}/empty-cache", EmptyCacheHandler),
    Route("groups/{group}/memory", MemoryHandler),
    Route("groups/{group}/executions", ExecutionsHandler),
    Route("groups/{group}/executions/{execution}", ExecutionHandler),
    Route("groups/{group}/ranks/{rank}/log", LogHandler),
    Route("groups/{group}/ranks/{rank}/log/download", LogDownloadHandler),
    Route("channel", ChannelHandler),
)


def tornado_routes() -> list[tuple[str, Any]]:
    """The routes as jupyter_server takes them; what is left below the prefix is answered in our form too."""
    routes = [(f"/{PREFIX}/{route.pattern()}", route.handler) for route in ROUTES]
    return [*routes, (f"/{PREFIX}(?:/.*)?", NotFoundHandler)]
