"""What group.json may say: a rank can write it, too, and a server builds a group of it when the agent is gone."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from jupyter_dist.protocol.ranks import MAX_RANKS

MAX_TEXT = 4096

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}\Z")


def believable(content: Any) -> dict[str, Any]:
    """The fields of a group.json that make sense; those that do not are left out, a spec as a whole."""
    if not isinstance(content, dict):
        return {}
    return {name: value for name, value in content.items() if name not in _FIELDS or _FIELDS[name](value)}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _is_count(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_spec(value: Any) -> bool:
    return isinstance(value, dict) and all(name in value and check(value[name]) for name, check in _SPEC.items())


def _is_environment(value: Any) -> bool:
    return isinstance(value, dict) and len(value) <= 100 and all(v is None or _is_text(v) for v in value.values())


def _is_devices(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_RANKS and all(_is_count(item, 0, MAX_RANKS) for item in value)


_SPEC: dict[str, Callable[[Any], bool]] = {
    "name": lambda value: _is_text(value) and bool(_NAME.match(value)),
    "world_size": lambda value: _is_count(value, 1, MAX_RANKS),
    "accelerator": lambda value: value in ("cpu", "cuda"),
    "backend": lambda value: value in ("gloo", "nccl"),
    "cwd": _is_text,
    "devices": _is_devices,
}

_FIELDS: dict[str, Callable[[Any], bool]] = {
    "agent_pid": lambda value: _is_count(value, 1, 1 << 31),
    "created_at": _is_time,
    "environment": lambda value: value is None or _is_environment(value),
    "spec": lambda value: value is None or _is_spec(value),
}
