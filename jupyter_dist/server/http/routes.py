"""The router, made of the table of operations."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from jupyter_dist.protocol.operations import OPERATIONS, Operation, path_pattern
from jupyter_dist.server.http.page.channel import ChannelHandler
from jupyter_dist.server.http.rest.answering import rest_handler

from .base import NotFoundHandler

PREFIX = "jupyter-dist/api"


def _handlers() -> dict[str, type]:
    by_path: dict[str, list[Operation]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, []).append(operation)
    return {path: ChannelHandler if path == "channel" else rest_handler(found) for path, found in by_path.items()}


HANDLERS = _handlers()  # by path below the prefix


@dataclass(frozen=True)
class Host:
    """The kind of server that serves our handlers: its bases authenticate a request, and stand after ours."""

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
        (f"/{PREFIX}/{path_pattern(path)}", host.handler(handler)) for path, handler in HANDLERS.items()
    ]
    return [*routes, (f"/{PREFIX}(?:/.*)?", host.handler(NotFoundHandler))]
