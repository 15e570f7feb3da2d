"""Answers and messages that a test's client is sent are held against the OpenAPI document: no field more, none less."""

from __future__ import annotations

import functools
import re
from collections import Counter
from typing import Any

import jsonschema

from jupyter_dist.protocol.operations import OPERATIONS, path_pattern
from jupyter_dist.server.http.openapi import build_openapi

MAX_BYTES = 1 << 16  # longer ones cost seconds, and have more of the same
MANY = 200
OF_MANY = 20

_checked: Counter[str] = Counter()


@functools.cache
def document() -> dict[str, Any]:
    """The document, with objects that have their own fields alone: to clients, others may come in later versions."""
    built = build_openapi("/", "1")
    closed = {
        name: {**schema, "additionalProperties": False} if "properties" in schema else schema
        for name, schema in built["components"]["schemas"].items()
    }
    return {**built, "components": {"schemas": closed}}


@functools.cache
def validator(path: str, verb: str, status: str) -> Any:
    responses = document()["paths"][path][verb]["responses"]
    assert status in responses, f"{verb} {path} answers {status}, of which the document says nothing"
    content = responses[status].get("content", {}).get("application/json")
    return _validator(content["schema"]) if content is not None else None


def check_answer(verb: str, path: str, status: int, answer: Any) -> None:
    """Raise unless it is what the document says of that address."""
    path = path.partition("?")[0].strip("/")
    route = next((one.path for one in OPERATIONS if re.fullmatch(path_pattern(one.path), path)), None)
    if route is None:
        found = component("ErrorAnswer")
    elif (
        status >= 400
        and str(status) not in document()["paths"][f"/{route}"].get(verb.lower(), {"responses": ()})["responses"]
    ):
        found = component("ErrorAnswer")  # a method that is not taken, a server that fails
    else:
        found = validator(f"/{route}", verb.lower(), str(status))
    if found is not None and _is_looked_at(f"{verb} {route} {status}"):
        found.validate(answer)


def check_message(message: Any, size: int) -> None:
    """Raise unless it is a message of the WebSocket, as its type says. Of a flood, a few are looked at."""
    kind = message["type"]
    if _is_looked_at(kind) and size < MAX_BYTES:
        component(f"{kind.capitalize()}Message").validate(message)


def _is_looked_at(kind: str) -> bool:
    """Of what a test asks for again and again until something has happened, a part."""
    _checked[kind] += 1
    return _checked[kind] <= MANY or _checked[kind] % OF_MANY == 0


@functools.cache
def component(name: str) -> Any:
    return _validator({"$ref": f"#/components/schemas/{name}"})


def _validator(schema: dict[str, Any]) -> Any:
    return jsonschema.Draft202012Validator({**schema, "components": document()["components"]})
