"""Parses untrusted JSON: long, deep, ambiguous or invalid input is refused before any object is built."""

from __future__ import annotations

import json
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.operations.declaration import SMALL_BODY_BYTES

# Requests are small, except for strings, such as the code of a cell: a body may be long in few strings only.
SMALL_BYTES = SMALL_BODY_BYTES
MAX_VALUES = 2000
MAX_DEPTH = 20
MAX_STRINGS = 2 * MAX_VALUES  # in a long body; names of fields are strings, too


def parse_json(data: bytes, what: str = "body") -> Any:
    """Parse JSON in UTF-8.

    This runs on the event loop, so its time is bounded for any input.

    Raises:
        JupyterDistError: `bad_request`, with what is wrong; `too_large`.
    """
    try:
        text = data.decode()
        if len(text) > SMALL_BYTES:
            _check_long(text)
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as err:
        reason = err if isinstance(err, ValueError) else "it is nested too deeply"
        raise bad_request(f"The {what} is not JSON: {reason}.", "Send a JSON object in UTF-8.") from err
    _check_size(value)
    return value


def _check_long(text: str) -> None:
    """Refuse a long body that has much beside its strings, or many strings: parsing it could take seconds."""
    plain = text.replace("\\\\", "").replace('\\"', "")  # then each quote begins or ends a string
    if plain.count('"') <= 2 * MAX_STRINGS and sum(map(len, plain.split('"')[::2])) <= SMALL_BYTES:
        return
    raise JupyterDistError(
        "too_large", "The body is too large.", "Only strings, such as the code of a cell, may be long."
    )


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
