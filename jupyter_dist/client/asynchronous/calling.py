"""Makes the request of an operation of the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from jupyter_dist.client.connection.http import Api
from jupyter_dist.protocol.operations import ANSWER_SECONDS, BY_NAME

Fields = Mapping[str, Any] | None


class Caller(Protocol):
    """The base of the classes whose methods are plain calls of the API."""

    async def _call(
        self,
        name: str,
        *arguments: object,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """Make the request of an operation; return its answer. Arguments that are None are not sent."""


class GroupCaller(Caller, Protocol):
    """The base of the calls of a group."""

    run_options: dict[str, Any]  # of each run that has no other value

    async def last_begun(self) -> str:
        """Return the id of the cell that began last. Raises JupyterDistError `unknown_execution` if none has."""


async def call(api: Api, name: str, *arguments: str, body: Fields = None, query: Fields = None) -> Any:
    """Make the request of an operation, with the arguments of its path; return its answer.

    Raises:
        JupyterDistError: the server's error, or `server_gone` if the server does not answer.
    """
    operation = BY_NAME[name]
    values = iter(arguments)
    path = [next(values) if part.startswith("{") else part for part in operation.path.split("/") if part]
    sent = None if body is None else _without_none(body)
    if operation.is_keyed:
        return await api.ask_once(*path, body=sent)
    seconds = operation.answer_seconds or ANSWER_SECONDS
    params = _without_none(query or {}) or None
    return await api.ask(operation.verb.upper(), *path, body=sent, params=params, timeout_seconds=seconds)


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
