"""How a field of a type is described, for JSON schemas, docs and TypeScript; and the rows of options and settings."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_type_hints

T = TypeVar("T")


class Field:
    """Describes a field besides its type: a sentence, and keywords of JSON Schema. For `Annotated`."""

    def __init__(
        self,
        description: str = "",
        *,
        label: str = "",
        name: str = "",
        schema: Any = None,
        is_path: bool = False,
        **keywords: Any,
    ) -> None:
        self.description = description
        self.label = label  # in forms
        self.name = name  # of the type in TypeScript
        self.schema = schema  # replaces the schema of the type
        self.is_path = is_path  # clients make it absolute for servers that may run in another folder
        self.keywords = keywords


RankSet = Annotated[str, Field(name="RankSet")]


class OptionField(Field):
    """The row of an option of groups, or of a setting: a field of a dataclass with its name, type and default.

    The setting of the server (`DistApp.NAME`), the request to start a group, its clients, commands, magics and tools,
    the form of a start and the reference pages are made of it.
    """

    def __init__(
        self,
        setting: str = "",
        *,
        start: str = "",
        metavar: str = "",
        is_once: bool = False,
        sent: Any = None,
        **keywords: Any,
    ) -> None:
        """Describe a row.

        Args:
            setting: what the setting does; empty: servers have none.
            start: its meaning as an option of a start; empty: starts have none.
            metavar: what commands call its value, such as GROUP.
            is_once: whether it is for the start alone: the group does not have it, nor a group that is started again.
            sent: its type in a request, if it is another.
            keywords: limits, as JSON Schema names them: `minimum`, `maximum`, `maxLength`; and what a Field has.
        """
        super().__init__(start, **keywords)
        self.setting = setting
        self.metavar = metavar
        self.is_once = is_once
        self.sent = sent


class OptionRow(NamedTuple):
    """One option or setting."""

    name: str
    type: Any
    option: OptionField
    default: Any

    @property
    def sent(self) -> Any:
        """Return its type in a request: without None, which is for defaults alone."""
        inner = get_args(self.type)
        if self.option.sent is not None or type(None) not in inner:
            return self.option.sent or self.type
        return functools.reduce(operator.or_, (each for each in inner if each is not type(None)))


@functools.cache
def rows(kind: Any) -> tuple[OptionRow, ...]:
    """Return the rows of a dataclass: its fields that are options or settings."""
    hints, found = get_type_hints(kind, include_extras=True), []
    for each in dataclasses.fields(kind):
        extras = getattr(hints[each.name], "__metadata__", ())
        if extras and isinstance(extras[-1], OptionField):
            default = each.default if each.default_factory is dataclasses.MISSING else each.default_factory()
            found.append(OptionRow(each.name, hints[each.name].__origin__, extras[-1], default))
    return tuple(found)


def options_of(kind: Callable[..., T], values: Mapping[str, Any]) -> T:
    """Return the options of a dataclass, with the default of each that has no value."""
    return kind(**{row.name: values[row.name] for row in rows(kind) if row.name in values})
