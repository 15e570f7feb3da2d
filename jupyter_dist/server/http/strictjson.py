"""Parses untrusted JSON: long, deep, ambiguous or invalid input is refused before any object is built."""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.operations.declaration import SMALL_BODY_BYTES

# Requests are small, except for a cell's code: one long string among the fields of an object, or of objects in it.
SMALL_BYTES = SMALL_BODY_BYTES
MAX_VALUES = 2000
MAX_DEPTH = 20
MAX_FIELDS = 100  # for an object with long strings
MAX_DEPTH_OF_LONG = 3  # of the objects around one: a debugger's message has the code of a cell in its arguments

_SPACE = re.compile(r"[ \t\r\n]*")


def parse_json(data: bytes, what: str = "body") -> Any:
    """Parse JSON in UTF-8.

    It runs on the event loop, so its time is bounded for any input.

    Raises:
        JupyterDistError: `bad_request`, saying what is wrong.
    """
    try:
        text = data.decode()
        value = _DECODER.decode(text) if len(text) <= SMALL_BYTES else _with_long_strings(text)
    except (ValueError, RecursionError, IndexError) as err:
        said = err if isinstance(err, ValueError) else "it ends too early, or is nested too deeply"
        raise bad_request(f"The {what} is not JSON: {said}.", "Send a JSON object in UTF-8.") from err
    _check_size(value)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    raise bad_request(f"The field '{twice[:60]}' is given twice.", "Send each field once.")


def _refused(text: str) -> Any:
    raise bad_request(f"{text[:60]} is not a JSON number.", "Send finite numbers.")


def _finite(text: str) -> float:
    number = float(text)
    return _refused(text) if number in (float("inf"), float("-inf")) else number


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refused, parse_float=_finite)


def _with_long_strings(text: str) -> dict[str, Any]:
    """Parse an object in which only strings may be long; anything else that is long is refused unparsed."""
    found, at = _object(text, 0, [SMALL_BYTES], MAX_DEPTH_OF_LONG)
    if text[at:].strip():
        raise ValueError("there is text after the object")
    return found


def _object(text: str, at: int, left: list[int], depth: int) -> tuple[dict[str, Any], int]:
    """Return the object that begins there, and where it ends; `left`: how much may be no long string."""
    pairs: list[tuple[str, Any]] = []
    at = _after(text, at, "{")
    if text[_SPACE.match(text, at).end()] == "}":  # type: ignore[union-attr]
        return {}, _after(text, at, "}")
    while True:
        name, at = scanstring(text, _after(text, at, '"'))
        at = _SPACE.match(text, _after(text, at, ":")).end()  # type: ignore[union-attr]  # it matches anything
        if text[at] == '"':
            value, at = scanstring(text, at + 1)
        elif text[at] == "{" and depth:
            value, at = _object(text, at, left, depth - 1)
        else:
            value, length = _DECODER.raw_decode(text[at : at + SMALL_BYTES])
            at, left[0] = at + length, left[0] - length
        pairs.append((name, value))
        left[0] -= len(name)
        if left[0] < 0 or len(pairs) > MAX_FIELDS:
            raise JupyterDistError("too_large", "The body is too large.", "Only the code of a cell may be long.")
        if text[_SPACE.match(text, at).end()] == "}":  # type: ignore[union-attr]
            return _unique(pairs), _after(text, at, "}")
        at = _after(text, at, ",")


def _after(text: str, at: int, wanted: str) -> int:
    at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
    if text[at] != wanted:
        raise ValueError(f"'{wanted}' is missing at character {at}")
    return at + 1


def _check_size(value: Any) -> None:
    """Refuse input that would take seconds to validate."""
    level, count = [value], 1
    for _ in range(MAX_DEPTH):
        outers = [outer for outer in level if isinstance(outer, (dict, list))]
        level = [inner for outer in outers for inner in (outer.values() if isinstance(outer, dict) else outer)]
        count += len(level)
        if count > MAX_VALUES:
            raise bad_request(f"The body has more than {MAX_VALUES} values.", "Put the data into files on the server.")
        if not level:
            return
    raise bad_request(f"The body is nested more than {MAX_DEPTH} deep.", "See docs/api.md.")
