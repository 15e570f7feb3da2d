"""Guards the operations of REST: checks authentication, the right, the query and the body of a request."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from tornado import web

from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.operations import KEY_HEADER, KEY_PATTERN, PARAMETERS, Operation
from jupyter_dist.protocol.schemas import Schema, body_schema

if TYPE_CHECKING:
    from jsonschema import ValidationError  # type: ignore[import-untyped]

CarryOut = Callable[[Any, Operation, "dict[str, Any]"], Awaitable[None]]

# Numbers as Python and JavaScript write them: 0.19999865600038902, 5e-05.
_NUMBER = re.compile(r"-?[0-9]{1,16}(\.[0-9]{1,24})?(e-[0-9]{1,2})?")

LARGE_CHARS = 1 << 20  # a field with this limit holds content, so its value is not quoted in errors


def guarded(operation: Operation, carry_out: CarryOut) -> Callable[..., Awaitable[None] | None]:
    """Return the method of a handler for an operation.

    It calls `carry_out` with the handler, the operation, and the arguments by name: the parameters of the path, the
    fields of query and body with their defaults, and `key` if the operation is keyed.
    """

    async def checked(handler: Any, *path: str) -> None:
        await check_right(handler, operation.right)
        # Only after authentication, because it takes seconds if a group's agent does not respond.
        await handler.service.adopted()
        arguments: dict[str, Any] = {
            name: PARAMETERS[name].type(text) for name, text in zip(operation.parameters, path, strict=True)
        }
        if operation.query is not None:
            arguments |= parse_query(operation.query, handler.request.query_arguments)
        if any(arguments.get(name) is not None for name in operation.execute_fields):
            await check_right(handler, "execute")
        if operation.body is not None:
            arguments |= parse_body(operation.body, handler.read_json())
        if operation.is_keyed:
            arguments["key"] = parse_key(handler.request.headers.get(KEY_HEADER), handler)
        await carry_out(handler, operation, arguments)

    return web.authenticated(checked)


async def check_right(handler: Any, right: str) -> None:
    """Ask the host's authorizer. Raises tornado's HTTPError 403."""
    user = handler.current_user
    answer = user is not None and handler.authorizer.is_authorized(handler, user, right, handler.auth_resource)
    if not (await answer if inspect.isawaitable(answer) else answer):
        raise web.HTTPError(403, f"User is not authorized to {right} on resource: {handler.auth_resource}.")


def parse_key(key: str | None, handler: Any, path: str | None = None) -> str | None:
    """Return the idempotency key, specific to this user and URL. Raises JupyterDistError `bad_request`."""
    if key is None:
        return None
    if not re.fullmatch(KEY_PATTERN, key):
        raise bad_request(f"The idempotency key is {key[:60]!r}.", "Use up to 200 letters, digits, '_' and '-'.")
    # A user who only sends the token gets a new name with each request.
    user = "" if handler.token_authenticated else handler.current_user.username
    return f"{user}\n{path or handler.request.path}\n{key}"


def parse_body(model: Any, body: Any) -> dict[str, Any]:
    """Return the fields of a body, a type of protocol/wire/requests.py, with their defaults.

    Raises:
        JupyterDistError: `bad_request`, naming the field.
    """
    schema = body_schema(model)
    if not isinstance(body, dict):
        raise bad_request(f"The body is {_type_name(body)}.", "Send a JSON object.")
    error = next(_validator()(schema).iter_errors(body), None)  # the first error only: finding all takes time
    if error is not None:
        raise _bad_field(error, schema)
    return {**_defaults(model), **body}


def parse_query(model: Any, arguments: Mapping[str, list[bytes]]) -> dict[str, Any]:
    """Return the query arguments with their defaults, numbers as numbers.

    Unknown arguments are ignored (`token`, `_xsrf`, cache busters).

    Raises:
        JupyterDistError: `bad_request`, naming the argument.
    """
    found = dict(_defaults(model))
    for name, schema in body_schema(model)["properties"].items():
        if name not in arguments:
            if name in body_schema(model).get("required", ()):
                raise bad_request(f"The argument '{name}' is missing.", schema.get("description", ""))
            continue
        text = arguments[name][-1].decode("utf-8", "replace")
        value = _number(text) if schema["type"] in ("integer", "number") else text
        if not _validator()(schema).is_valid(value):
            raise bad_request(f"'{name}' cannot be '{text[:60]}'.", schema.get("description", ""))
        found[name] = value
    return found


@functools.cache
def _defaults(model: Any) -> dict[str, Any]:
    fields = body_schema(model)["properties"]
    return {name: field["default"] for name, field in fields.items() if "default" in field}


@functools.cache
def _validator() -> Any:
    """Return the class of validators; imported by the first request that has something to validate."""
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415

    # JSON Schema accepts 2.0 as an integer, but it is not a number of ranks.
    checker = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    return validators.extend(Draft202012Validator, type_checker=checker)


def _number(text: str) -> int | float | None:
    """Return a finite number in plain digits."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    return float(text) if match[1] or match[2] else int(text)


def _bad_field(error: ValidationError, schema: Schema) -> JupyterDistError:
    known = ", ".join(schema.get("properties", {}))
    if error.validator == "additionalProperties":
        unknown = sorted(set(error.instance) - set(error.schema.get("properties", {})))
        return bad_request(f"There is no field '{str(unknown[0])[:60]}'.", f"Fields: {known}.")
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        return bad_request(f"The field '{missing}' is missing.", f"Fields: {known}.")
    name = ".".join(str(part) for part in error.absolute_path)
    field = schema["properties"].get(next(iter(error.absolute_path), ""), {})
    hint = error.schema.get("description") or field.get("description") or f"See the field '{name}' in docs/api.md."
    if error.validator == "maxLength":
        limit = int(error.validator_value)
        message = f"The field '{name}' has {len(error.instance)} characters; the limit is {limit}."
        return JupyterDistError("too_large" if limit >= LARGE_CHARS else "bad_request", message, hint)
    return bad_request(f"The field '{name}' is {_shown(error.instance)}.", hint)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return repr(value[:60])
    if value == []:
        return "an empty list"
    return repr(value) if isinstance(value, (int, float)) else _type_name(value)


def _type_name(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", type(None): "null", bool: "a boolean"}
    return names.get(type(value), "a number")
