"""Declares the request and the answers of one verb of a route, for validation and for the OpenAPI document."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tornado import web

from jupyter_dist.protocol.errors import JupyterDistError, bad_request

from .schemas import Schema, body_schema
from .strictjson import SMALL_BYTES

if TYPE_CHECKING:
    from jsonschema import ValidationError  # type: ignore[import-untyped]

Verb = Callable[..., Awaitable[None]]
V = TypeVar("V", bound=Verb)

# Numbers as Python and JavaScript write them: 0.19999865600038902, 5e-05.
_NUMBER = re.compile(r"-?[0-9]{1,16}(\.[0-9]{1,24})?(e-[0-9]{1,2})?")

LARGE_CHARS = 1 << 20  # a field with this limit holds content, so its value is not quoted in errors
KEY_HEADER = "Idempotency-Key"
KEY_PATTERN = r"[A-Za-z0-9_-]{1,200}"

# Allowed values of a {parameter}: our names and ids, never a slash.
PARAMETERS = {
    "group": (r"[A-Za-z0-9_.-]{1,60}", "A group's id or name."),
    "execution": (r"[A-Za-z0-9_-]{1,80}", "An execution's id."),
    "rank": (r"[0-9]{1,7}", "A rank."),
    "name": (r"[^/]{1,300}", "An environment's name."),
}


@dataclass(frozen=True)
class Answer:
    """One successful answer of an operation."""

    description: str
    model: Any = None  # a type of protocol/models.py
    content_type: str = "application/json"
    headers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operation:
    """A verb of a route."""

    summary: str
    action: str  # for authorizers: read, write or execute
    answers: Mapping[int, Answer]
    body: Any = None  # a type of protocol/requests.py
    query: Mapping[str, Schema] = field(default_factory=dict)
    body_bytes: int = SMALL_BYTES
    is_keyed: bool = False  # supports the header Idempotency-Key: a retry is not carried out twice
    errors: tuple[str, ...] = ()  # error codes of docs/api.md, besides those that every operation has


@dataclass(frozen=True)
class Route:
    """A path below the prefix, with {parameters}, and its handler."""

    path: str
    handler: Any
    arguments: Mapping[str, Any] = field(default_factory=dict)  # for the handler's `initialize`

    def pattern(self) -> str:
        """Return the regular expression for the router."""
        return re.sub(
            r"\{(\w+)\}",
            lambda match: f"({PARAMETERS[match[1]][0]})",
            re.escape(self.path).replace(r"\{", "{").replace(r"\}", "}"),
        )


def operation(declared: Operation) -> Callable[[V], V]:
    """Guard a handler's verb: check authentication, authorization, query and body.

    The method is then called with the path arguments; `self.query` and `self.body` are set.
    """

    def decorate(method: V) -> V:
        @functools.wraps(method)
        async def checked(self: Any, *path: str) -> None:
            await check_right(self, declared.action)
            # Only after authentication, because it takes seconds if a group's agent does not respond.
            await self.service.adopted()
            self.query = parse_query(declared.query, self.request.query_arguments)
            self.body = parse_body(declared.body, self.read_json()) if declared.body is not None else {}
            self.key = parse_key(self.request.headers.get(KEY_HEADER), self) if declared.is_keyed else None
            await method(self, *path)

        guarded = web.authenticated(checked)
        guarded.operation = declared  # type: ignore[attr-defined]
        return cast(V, guarded)

    return decorate


async def check_right(handler: Any, action: str) -> None:
    """Ask the host's authorizer. Raises tornado's HTTPError 403."""
    user = handler.current_user
    answer = user is not None and handler.authorizer.is_authorized(handler, user, action, handler.auth_resource)
    if not (await answer if inspect.isawaitable(answer) else answer):
        raise web.HTTPError(403, f"User is not authorized to {action} on resource: {handler.auth_resource}.")


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
    """Return the body, a type of protocol/requests.py. Raises JupyterDistError `bad_request` that names the field."""
    schema = body_schema(model)
    if not isinstance(body, dict):
        raise bad_request(f"The body is {_type_name(body)}.", "Send a JSON object.")
    error = next(_validator()(schema).iter_errors(body), None)  # the first error only: finding all takes time
    if error is not None:
        raise _bad_field(error, schema)
    return body


def parse_query(schemas: Mapping[str, Schema], arguments: Mapping[str, list[bytes]]) -> dict[str, Any]:
    """Return the known query arguments, numbers as numbers. Unknown ones are ignored (`token`, `_xsrf`, cache busters).

    Raises:
        JupyterDistError: `bad_request`, naming the argument.
    """
    found: dict[str, Any] = {}
    for name, schema in schemas.items():
        if name not in arguments:
            continue
        text = arguments[name][-1].decode("utf-8", "replace")
        value = _number(text) if schema["type"] in ("integer", "number") else text
        if not _validator()(schema).is_valid(value):
            raise bad_request(f"'{name}' cannot be '{text[:60]}'.", schema.get("description", ""))
        found[name] = value
    return found


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
    return repr(value) if isinstance(value, (int, float)) else _type_name(value)


def _type_name(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", type(None): "null", bool: "a boolean"}
    return names.get(type(value), "a number")
