"""The OpenAPI 3.1 document, made of the table of operations."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from jupyter_dist.protocol.operations import KEY_HEADER, KEY_PATTERN, OPERATIONS, PARAMETERS, Answer, Operation
from jupyter_dist.protocol.schemas import Schema, body_schema, components, schema_of

from .base import STATUS_OF_CODE

_TYPES = {str: "string", int: "integer"}


def build_openapi(server_url: str, version: str) -> dict[str, Any]:
    """Return the document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        item = paths.setdefault(f"/{operation.path}", {})
        item[operation.verb] = _operation(operation)
        if operation.parameters:
            item["parameters"] = [_path_parameter(name) for name in operation.parameters]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "jupyter_dist",
            "version": version,
            "description": "Groups of torch.distributed ranks on a Jupyter server. See docs/api.md.",
            "license": {"name": "BSD-3-Clause"},
        },
        "servers": [{"url": server_url.rstrip("/") or "/"}],
        "paths": paths,
        "components": {
            "schemas": components(),
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "Authorization", "description": "token <token>"}
            },
        },
        "security": [{"token": []}],
    }


def _path_parameter(name: str) -> dict[str, Any]:
    parameter = PARAMETERS[name]
    schema: Schema = {"type": "string", "pattern": f"^{parameter.pattern}$"}
    if parameter.type is int:
        schema = {"type": "integer", "minimum": 0}
    return {"name": name, "in": "path", "required": True, "description": parameter.description, "schema": schema}


def _operation(declared: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": declared.name,
        "summary": declared.sentence.rstrip("."),
        **({"description": declared.details} if declared.details else {}),
        "x-right": declared.right,
        "responses": {str(declared.answer.status): _response(declared.answer), **_errors(declared)},
    }
    if declared.answer.field:
        described["x-answer-field"] = declared.answer.field
    if parameters := [*_query_parameters(declared), *_key_parameters(declared)]:
        described["parameters"] = parameters
    if declared.body is not None:
        schema = body_schema(declared.body)
        required = bool(schema["required"])
        content = {"application/json": {"schema": schema}}
        described["requestBody"] = {"required": required, "content": content, "x-max-bytes": declared.max_body_bytes}
    return described


def _query_parameters(declared: Operation) -> list[dict[str, Any]]:
    fields = body_schema(declared.query)["properties"] if declared.query is not None else {}
    return [{"name": name, "in": "query", "required": False, "schema": schema} for name, schema in fields.items()]


def _key_parameters(declared: Operation) -> list[dict[str, Any]]:
    if not declared.is_keyed:
        return []
    key = {"type": "string", "pattern": f"^{KEY_PATTERN}$"}
    text = "Chosen by the client: a retry with the same key is not carried out twice."
    return [{"name": KEY_HEADER, "in": "header", "required": False, "description": text, "schema": key}]


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
    if declared.body is not None or declared.query is not None:
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
