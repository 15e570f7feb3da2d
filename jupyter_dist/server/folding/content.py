"""Normalizes the content of a rich output: ranks send JSON of any shape, readers need a known one."""

from __future__ import annotations

import json
from typing import Any

# Deeper than any real output, and far below any reader's recursion limit.
MAX_DEPTH = 100
MAX_BYTES = 32 << 20
MAX_DISPLAY_ID = 1000


class DamagedContentError(ValueError):
    """Not the content of an output; the record is skipped."""


def read_content(payload: bytes, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Return `data` and `metadata` as objects, `ename`, `evalue` and `traceback` as text, `display_id` or None.

    Content longer than `max_bytes` is replaced by a sentence, because parsing it would block the event loop.

    Raises:
        DamagedContentError: it is not a JSON object, or is nested too deeply.
    """
    if len(payload) > max_bytes:
        return _normal(_too_large(len(payload)))
    try:
        # Strict JSON has no NaN: a browser would drop the whole message.
        content = json.loads(payload or b"{}", parse_constant=str, parse_float=_finite)
    except (ValueError, RecursionError) as err:
        raise DamagedContentError(f"not JSON: {err}") from err
    if not isinstance(content, dict) or is_deep(content):
        raise DamagedContentError("not an object, or nested too deeply")
    return _normal(content)


def _too_large(size: int) -> dict[str, Any]:
    sentence = f"An output of {size / 1e6:.0f} MB is too large to show here; download the log to see it."
    return {"data": {"text/plain": sentence}, "evalue": sentence, "traceback": [sentence]}


def _normal(content: dict[str, Any]) -> dict[str, Any]:
    transient = content.get("transient")
    display_id = transient.get("display_id") if isinstance(transient, dict) else None
    traceback = content.get("traceback")
    return {
        **{name: _object(content.get(name)) for name in ("data", "metadata")},
        **{name: str(content.get(name, "")) for name in ("ename", "evalue")},
        "traceback": [str(line) for line in traceback] if isinstance(traceback, list) else [],
        "execution_count": _count(content.get("execution_count")),
        "display_id": display_id if isinstance(display_id, str) and len(display_id) <= MAX_DISPLAY_ID else None,
        "wait": bool(content.get("wait")),
    }


def is_deep(content: Any) -> bool:
    """Whether lists and objects are nested deeper than MAX_DEPTH."""
    level = [content]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def _finite(text: str) -> float | str:
    number = float(text)
    return text if number in (float("inf"), float("-inf")) else number


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 53 else None
