"""The base of the API's answers in Python: typed attributes, a text, and a table for notebooks."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

MAX_SHOWN_CHARS = 200  # of a value in a table


class ApiObject:
    """An object of the HTTP API; `model` is its JSON as the server sent it (docs/reference/http.md).

    A field that the server did not send is None.
    """

    model: Any

    def __init__(self, model: Mapping[str, Any]) -> None:
        self.model = dict(model)
        for name, hint in _fields_of(type(self)).items():
            setattr(self, name, _value(hint, self.model.get(name)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ApiObject) and type(other) is type(self) and other.model == self.model

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        fields = (f"{name}={getattr(self, name)!r}" for name in _fields_of(type(self)))
        return f"{type(self).__name__}({', '.join(fields)})"

    def _repr_html_(self) -> str:
        rows = ((name, getattr(self, name)) for name in _fields_of(type(self)))
        return (
            "<table>"
            + "".join(f"<tr><th>{escape(name)}</th><td>{html_of(value)}</td></tr>" for name, value in rows)
            + "</table>"
        )


class ApiList(list[T], Generic[T]):
    """A list of objects of the HTTP API, which is a table in a notebook."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self)) or "[]"

    def _repr_html_(self) -> str:
        return html_of(list(self))

    @property
    def model(self) -> list[dict[str, Any]]:
        """Return the JSON of the objects."""
        return [one.model for one in self if isinstance(one, ApiObject)]


def html_of(value: object) -> str:
    """Return a value as HTML: objects as rows of a table, all text escaped."""
    if isinstance(value, list) and value and all(isinstance(one, ApiObject) for one in value):
        names = list(_fields_of(type(value[0])))
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        rows = ("".join(f"<td>{html_of(getattr(one, name))}</td>" for name in names) for one in value)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    if isinstance(value, ApiObject):
        return value._repr_html_()
    text = "" if value is None else str(value)
    return escape(text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}...")


_FIELDS: dict[type, dict[str, Any]] = {}


def _fields_of(cls: type) -> dict[str, Any]:
    if cls not in _FIELDS:
        _FIELDS[cls] = {name: hint for name, hint in get_type_hints(cls).items() if name != "model"}
    return _FIELDS[cls]


def _value(hint: Any, value: Any) -> Any:
    """Return a JSON value as the type that a field has."""
    if value is None:
        return None
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _value(next(each for each in inner if each is not type(None)), value)
    if origin is list:
        return [_value(inner[0], each) for each in value]
    if origin is dict:
        return {_key(inner[0], key): _value(inner[1], each) for key, each in value.items()}
    return hint(value) if isinstance(hint, type) and issubclass(hint, ApiObject) else value


def _key(hint: Any, key: str) -> Any:
    return int(key) if hint is int else key


def listed(cls: type[T], models: Iterable[Any]) -> ApiList[T]:
    """Return JSON objects as objects of a class."""
    return ApiList(cls(model) for model in models)  # type: ignore[call-arg]
