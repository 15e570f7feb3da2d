"""Answers a request by the method of GroupOperations, ServerOperations or a part that has the operation's name."""

from __future__ import annotations

from functools import partial
from typing import Any

from jupyter_dist.protocol.operations import Operation
from jupyter_dist.server.groups.operations import FileAnswer
from jupyter_dist.server.http.base import DistHandler
from jupyter_dist.server.http.guard import guarded
from jupyter_dist.server.http.openapi import build_openapi

from .files import FileHandler


def rest_handler(operations: list[Operation]) -> type[DistHandler]:
    """Return the handler class of a path, with a method for each operation."""
    base = FileHandler if any(operation.is_file for operation in operations) else DistHandler
    name = "".join(part.title() for part in operations[0].name.split("_"))
    members: dict[str, Any] = {"__doc__": operations[0].sentence, "operations": {one.verb: one for one in operations}}
    for operation in operations:
        members[operation.verb] = guarded(operation, SPECIAL.get(operation.name, answer))
    return type(f"{name}Handler", (base,), members)


async def answer(handler: DistHandler, operation: Operation, arguments: dict[str, Any]) -> None:
    """Carry an operation out, and send its result."""
    if operation.is_owned:
        arguments["owner"] = handler.current_user.username
    path = operation.path
    if operation.is_of_group:
        target: Any = handler.service.group(arguments.pop("group"))
        path = path.replace("{group}", target.id)
    else:
        target = handler.service.operations
    act = handler.service.parts.coroutine(operation.name)
    if act is None:
        act = getattr(target, operation.name)
    elif operation.is_of_group:
        act = partial(act, target.group)
    with handler.service.downloads.counted(handler, operation.is_capped):
        answered = await act(**arguments)
        if isinstance(answered, FileAnswer):
            assert isinstance(handler, FileHandler)
            await handler.stream(operation.answer.content_type, answered)
            return
    location = handler.url(path, answered["id"]) if "Location" in operation.answer.headers else None
    handler.answer(answered, operation.answer.status, location)


async def _openapi(handler: DistHandler, *_: Any) -> None:
    handler.answer(build_openapi(handler.url(), handler.service.version))


# Operations that need more of the request than their arguments.
SPECIAL = {"openapi": _openapi}
