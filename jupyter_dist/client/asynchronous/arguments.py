"""Arguments of methods that become fields of a request: their names, which Python does not check, and folders."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from jupyter_dist.protocol.errors import bad_request


def check_names(given: Iterable[str], options: type, *others: str) -> None:
    """Check the names of keyword arguments before a request is made.

    Args:
        given: The names.
        options: A TypedDict, whose fields are the known names.
        others: Known names of other arguments of the same function.

    Raises:
        JupyterDistError: `bad_request`, with the nearest known name in its hint.
    """
    known = [*options.__annotations__, *others]
    for name in given:
        if name not in options.__annotations__:
            near = get_close_matches(name, known, 1)
            hint = f"Did you mean '{near[0]}'?" if near else f"Known arguments: {', '.join(sorted(known))}."
            raise bad_request(f"There is no argument '{name}'.", hint)


def place_of(folder: str | None, *, is_private: bool) -> str | None:
    """Return the path of a folder that a user names: a private server may run in another folder."""
    return str(Path(folder).expanduser().absolute()) if folder is not None and is_private else folder
