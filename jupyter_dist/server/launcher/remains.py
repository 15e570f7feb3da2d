"""Validates group.json: a rank can write it, too, and the server shows a group from it until the agent answers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from jupyter_dist.protocol.ranks import MAX_RANKS

MAX_TEXT = 4096

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}\Z")


def believable(content: Any) -> dict[str, Any]:
    """Return group.json without invalid fields.

    Required fields get a default, because a running group must always be shown.
    """
    if not isinstance(content, dict):
        return {}
    found = {name: value for name, value in content.items() if name not in _FIELDS or _FIELDS[name](value)}
    if content.get("spec") is not None:
        found["spec"] = _spec(content["spec"])
    return found


def _spec(value: Any) -> dict[str, Any]:
    given = value if isinstance(value, dict) else {}
    needed = {name: given[name] if check(given.get(name)) else other for name, (check, other) in _SPEC.items()}
    return {**given, **needed}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _is_count(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_environment(value: Any) -> bool:
    return isinstance(value, dict) and len(value) <= 100 and all(v is None or _is_text(v) for v in value.values())


def _is_devices(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_RANKS and all(_is_count(item, 0, MAX_RANKS) for item in value)


# Each with its default. Values of a later version are kept.
_SPEC: dict[str, tuple[Callable[[Any], bool], Any]] = {
    "name": (lambda value: _is_text(value) and bool(_NAME.match(value)), "damaged"),
    "world_size": (lambda value: _is_count(value, 1, MAX_RANKS), 1),
    "accelerator": (_is_text, "cpu"),
    "backend": (_is_text, "gloo"),
    "cwd": (_is_text, ""),
    "devices": (_is_devices, []),
}

_FIELDS: dict[str, Callable[[Any], bool]] = {
    "agent_pid": lambda value: _is_count(value, 1, 1 << 31),
    "created_at": _is_time,
    "environment": lambda value: value is None or _is_environment(value),
    "protocol": lambda value: _is_count(value, 0, 1 << 31),
    "version": _is_text,
    "spec": lambda value: value is None,  # else see above
}
