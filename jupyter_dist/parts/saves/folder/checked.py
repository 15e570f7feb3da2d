"""The fields of files in a save, checked as a request's fields: another user may have made the save.

Names that become parts of paths have a pattern each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from jupyter_dist.protocol.ranks import MAX_RANKS, RankSet
from jupyter_dist.system.files.valuefiles import CHUNK_NAME, rank_file

from .layout import SAVE_ID

Check = Callable[[Any], bool]


def is_text(value: Any) -> bool:
    """Whether a value is a text."""
    return isinstance(value, str)


def is_count(value: Any) -> bool:
    """Whether a value is a whole number from 0 on."""
    return type(value) is int and 0 <= value < 1 << 63


def is_list_of(value: Any, check: Check) -> TypeGuard[list[Any]]:
    """Whether a value is a list of such values."""
    return isinstance(value, list) and all(map(check, value))


def checked_save(fields: Any) -> dict[str, Any]:
    """Return the known fields of a save, as save.json has them. Raises ValueError."""
    found = _checked(fields, _SAVE)
    for one in (*found["skipped"], *found["notes"]):
        RankSet.from_text(one["ranks"], found["world_size"])  # raises ValueError
    return found


def checked_index(fields: Any, rank: int) -> dict[str, Any]:
    """Return the known fields of a rank's index. Raises ValueError."""
    found = _checked(fields, _INDEX)
    if found["file"] != rank_file(rank):
        message = f"its rank file is called {found['file']!r:.40}"
        raise ValueError(message)
    return found


def _checked(fields: Any, checks: Mapping[str, Check]) -> dict[str, Any]:
    if not isinstance(fields, dict):
        message = "it has no fields"
        raise ValueError(message)
    given = {name: fields.get(name) for name in checks if name in fields or name not in _OPTIONAL}
    wrong = next((name for name, value in given.items() if not checks[name](value)), None)
    if wrong is not None:
        message = f"its field {wrong!r} is {given[wrong]!r:.40}"
        raise ValueError(message)
    return given


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_id(value: Any) -> bool:
    return is_text(value) and re.fullmatch(SAVE_ID, value) is not None


def _is_chunk(value: Any) -> bool:
    return is_text(value) and re.fullmatch(CHUNK_NAME, value) is not None


def _is_lacking(value: Any) -> bool:
    """Whether a value describes a name, or a part of one, that is not saved."""
    checks: dict[str, Check] = {"name": is_text, "reason": is_text}
    optional: dict[str, Check] = {"ranks": is_text, "execution_count": _is_count_or_none, "code": _is_text_or_none}
    if not isinstance(value, dict) or not all(check(value.get(name)) for name, check in checks.items()):
        return False
    return all(check(value[name]) for name, check in optional.items() if name in value)


def _is_lacking_on_ranks(value: Any) -> bool:
    return _is_lacking(value) and "ranks" in value


def _is_count_or_none(value: Any) -> bool:
    return value is None or is_count(value)


def _is_text_or_none(value: Any) -> bool:
    return value is None or is_text(value)


_OPTIONAL = {"automatic"}
_SAVE: dict[str, Check] = {
    **dict.fromkeys(("group", "group_id", "accelerator", "python_version", "torch_version", "jupyter_dist"), is_text),
    **dict.fromkeys(("num_names", "total_bytes", "written_bytes", "execution_count"), is_count),
    **dict.fromkeys(("saved_at", "seconds"), _is_time),
    **dict.fromkeys(("skipped", "notes"), lambda value: is_list_of(value, _is_lacking_on_ranks)),
    "id": _is_id,
    "world_size": lambda value: is_count(value) and 0 < value <= MAX_RANKS,
    "automatic": lambda value: isinstance(value, bool),
}
_INDEX: dict[str, Check] = {
    **dict.fromkeys(("file", "file_digest"), is_text),
    **dict.fromkeys(("total_bytes", "host_bytes"), is_count),
    "chunks": lambda value: is_list_of(value, _is_chunk),
    **dict.fromkeys(("skipped", "notes"), lambda value: is_list_of(value, _is_lacking)),
}
