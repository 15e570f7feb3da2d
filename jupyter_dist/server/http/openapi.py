"""The OpenAPI 3.1 document, generated from the routes and the operations of their handlers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from .base import STATUS_OF_CODE
from .operations import KEY_HEADER, KEY_PATTERN, PARAMETERS, Answer, Operation, Route
from .schemas import body_schema, components, schema_of

VERBS = ("get", "post", "put", "patch", "delete")


def build_openapi(routes: Iterable[Route], server_url: str, version: str) -> dict[str, Any]:
    """Return the document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "jupyter_dist",
            "version": version,
            "description": "Groups of torch.distributed ranks on a Jupyter server. See docs/api.md.",
            "license": {"name": "BSD-3-Clause"},
        },
        "servers": [{"url": server_url.rstrip("/") or "/"}],
        "paths": {f"/{route.path}": _path_item(route) for route in routes},
        "components": {
            "schemas": components(),
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "Authorization", "description": "token <token>"}
            },
        },
        "security": [{"token": []}],
    }


def operations_of(handler: Any) -> dict[str, Operation]:
    """Return the operations of a handler by verb."""
    found = ((verb, getattr(getattr(handler, verb, None), "operation", None)) for verb in VERBS)
    return {verb: declared for verb, declared in found if declared is not None}


def _path_item(route: Route) -> dict[str, Any]:
    item: dict[str, Any] = {
        verb: _operation(verb, route.path, declared) for verb, declared in operations_of(route.handler).items()
    }
    names = re.findall(r"\{(\w+)\}", route.path)
    if names:
        item["parameters"] = [
            {
                "name": name,
                "in": "path",
                "required": True,
                "description": PARAMETERS[name][1],
                "schema": {"type": "string", "pattern": f"^{PARAMETERS[name][0]}$"},
            }
            for name in names
        ]
    return item


def _operation(verb: str, path: str, declared: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": _operation_id(verb, path),
        "summary": declared.summary,
        "x-action": declared.action,
        "responses": {
            **{str(status): _response(answer) for status, answer in declared.answers.items()},
            **_errors(declared),
        },
    }
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "query", "required": False, "schema": schema} for name, schema in declared.query.items()
    ]
    if declared.is_keyed:
        key = {"type": "string", "pattern": f"^{KEY_PATTERN}$"}
        text = "Chosen by the client: a retry with the same key is not carried out twice."
        parameters.append({"name": KEY_HEADER, "in": "header", "required": False, "description": text, "schema": key})
    if parameters:
        described["parameters"] = parameters
    if declared.body is not None:
        schema = body_schema(declared.body)
        required = bool(schema["required"])
        content = {"application/json": {"schema": schema}}
        described["requestBody"] = {"required": required, "content": content, "x-max-bytes": declared.body_bytes}
    return described


def _operation_id(verb: str, path: str) -> str:
    words = re.findall(r"\w+", path) or ["root"]
    return "_".join([verb, *words])


def _response(answer: Answer) -> dict[str, Any]:
    response: dict[str, Any] = {"description": answer.description}
    if answer.model is not None:
        response["content"] = {answer.content_type: {"schema": schema_of(answer.model)}}
    elif answer.content_type != "application/json":
        response["content"] = {answer.content_type: {"schema": {"type": "string"}}}
    if answer.headers:
        response["headers"] = {name: {"schema": {"type": "string"}} for name in answer.headers}
    return response


def _errors(declared: Operation) -> dict[str, Any]:
    codes = ["forbidden", *declared.errors]
    if declared.body is not None or declared.query:
        codes.append("bad_request")
    if declared.body is not None and "too_large" not in codes:
        codes.append("too_large")
    by_status: dict[int, list[str]] = {}
    for code in codes:
        by_status.setdefault(STATUS_OF_CODE[code], []).append(code)
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}
    return {
        str(status): {"description": f"{HTTPStatus(status).phrase}: {', '.join(codes)}", "content": content}
        for status, codes in sorted(by_status.items())
    }
