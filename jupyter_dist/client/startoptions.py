"""The options of a start, and the states of replaced ranks, as arguments of commands and magics, made of their rows."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jupyter_dist.protocol.field import rows
from jupyter_dist.protocol.ranks import ranks_per_node
from jupyter_dist.protocol.schemas import (
    Schema,
    beginnings,
    body_schema,
    replace_options,
    replace_states,
    schema_of,
    start_rows,
)
from jupyter_dist.protocol.wire.requests import StartOptions

OPTIONS: Mapping[str, Schema] = body_schema(StartOptions)["properties"]
# `start` in Python does these; they are no fields of the request.
OPTIONS = {**OPTIONS, **{name: schema_of(hint) for name, (_, hint) in beginnings().items()}}
SHORT = {"num_ranks": "-n", "devices": "-d"}
LONG = {"launcher_options": "--launcher-option"}  # each adds one
METAVARS = {row.name: row.option.metavar for row in (*rows(StartOptions), *start_rows()) if row.option.metavar}
METAVARS.update({name: hint.__metadata__[0].metavar for name, (_, hint) in beginnings().items()})
_TYPES: dict[str, Callable[[str], Any]] = {"string": str, "integer": int, "number": float}


def devices(text: str) -> list[int] | str:
    """Parse `0,1,3` or `all`."""
    try:
        return "all" if text == "all" else [int(part) for part in text.strip("[]").split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not a list of devices: write 0,1,3, or all") from None


def variable(text: str) -> tuple[str, str]:
    """Parse `NAME=VALUE`."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} has no value: write NAME=VALUE")
    return name, value


_PARSERS: dict[str, Callable[[str], Any]] = {"devices": devices, "ranks_per_node": ranks_per_node}


def word_of(name: str) -> str:
    """Return the option of a field."""
    return LONG.get(name, f"--{name.replace('_', '-')}")


def add_start_options(
    parser: argparse.ArgumentParser,
    names: Iterable[str] = (),
    *,
    texts: Mapping[str, str] | None = None,
    short: bool = True,
) -> None:
    """Add an argument for each option of a start.

    Args:
        parser: of a command or a magic.
        names: the options; by default all.
        texts: the help of options that mean something else by default there.
        short: whether some have a letter, too.
    """
    for name in names or OPTIONS:
        field = OPTIONS[name]
        text = (texts or {}).get(name, field["description"]).replace("%", "%%")
        words = [*([SHORT[name]] if short and name in SHORT else []), word_of(name)]
        parser.add_argument(*words, dest=name, help=text, **_form(name, field))


def add_replace_state(parser: argparse.ArgumentParser, text: str) -> None:
    """Add the argument for what ranks begin with that replace dead ones; `text` begins its help."""
    states = replace_states()
    words = "; ".join(f"{state}: {meaning}" for state, meaning in states.items())
    parser.add_argument("--state", choices=tuple(states), default="empty", help=f"{text}. {words.replace('%', '%%')}")


def add_replace_options(parser: argparse.ArgumentParser) -> None:
    """Add an argument for each option that parts have for a replacement of ranks."""
    for name, hint in replace_options().items():
        field = schema_of(hint)
        parser.add_argument(word_of(name), dest=name, help=field["description"], **_form(name, field))


def given_replace_options(options: argparse.Namespace) -> Any:
    """Return the options of a replacement that were given, as keyword arguments of `replace` in the Python client."""
    return {name: value for name in replace_options() if (value := getattr(options, name)) is not None}


def _form(name: str, field: Schema) -> dict[str, Any]:
    """Return how an argument is read."""
    if "enum" in field:
        return {"choices": field["enum"]}
    kind = field.get("type")
    if kind == "object":
        return {"action": "append", "type": variable, "metavar": "NAME=VALUE"}
    if kind == "boolean":
        return {"action": argparse.BooleanOptionalAction}
    if kind == "array":
        return {"action": "append", "metavar": METAVARS.get(name)}
    metavar = "SECONDS" if name.endswith("_seconds") else METAVARS.get(name)
    return {"type": _PARSERS.get(name) or _TYPES[str(kind)], **({"metavar": metavar} if metavar else {})}


def given_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options that were given, as keyword arguments of `start` in the Python client."""
    found = {name: value for name in OPTIONS if (value := getattr(options, name, None)) is not None}
    for name in ("env", "launcher_options"):
        if name in found:
            found[name] = dict(found[name])
    return found
