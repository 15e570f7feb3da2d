"""Arguments of methods that become fields of a request: their names, which Python does not check, and folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.protocol.schemas import body_schema, path_fields


def check_names(given: Iterable[str], options: Any, *others: str) -> None:
    """Check the names of keyword arguments before a request is made.

    Args:
        given: The names.
        options: A TypedDict of requests.py: its fields, with the fields of parts, are the known names.
        others: Known names of other arguments of the same function.

    Raises:
        JupyterDistError: `bad_request`, with the nearest known name in its hint.
    """
    fields = body_schema(options)["properties"]
    known = [*fields, *others]
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"Did you mean '{near[0]}'?" if near else f"Known arguments: {', '.join(sorted(known))}."
            raise bad_request(f"There is no argument '{name}'.", hint)


def place_of(folder: str | None, *, is_private: bool) -> str | None:
    """Return the path of a folder that a user names: a private server may run in another folder."""
    return os.path.abspath(os.path.expanduser(folder)) if folder is not None and is_private else folder


def placed(fields: Mapping[str, Any], options: Any, *, is_private: bool) -> dict[str, Any]:
    """Return the fields of a request, a type of requests.py, with its paths as `place_of` has them."""
    paths = {name: place_of(fields[name], is_private=is_private) for name in path_fields(options) if name in fields}
    return {**fields, **paths}
