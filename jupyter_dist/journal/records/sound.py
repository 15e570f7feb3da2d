"""Validates the headers of journal records, which ranks can forge: they have access to their group's folder.

Records are validated where they cross a border of trust: when an agent makes one of what a rank sent, when a head
receives one from a node agent, and when a server receives one from an agent or reads it from a file. An agent that
passes its own journal on only needs the numbers of the records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jupyter_dist.protocol.parts import declared
from jupyter_dist.protocol.ranks import MAX_RANKS, RankSet
from jupyter_dist.protocol.wire.specs import MAX_SEQ
from jupyter_dist.transport.frames import Header

MAX_TEXT = 4096
STREAMS = ("stdout", "stderr")
_NUMBERS = (int, float)

# The required fields by kind; records of unknown kinds are passed on, but not shown. A wide record (wide.py) has
# `ranks` in place of `rank`.
_NEEDED = {
    "begin": ("execution_id", "ranks"),
    "stream": ("rank", "name"),
    "display_data": ("rank",),
    "update_display_data": ("rank",),
    "execute_result": ("rank",),
    "error": ("rank",),
    "clear_output": ("rank",),
    **dict.fromkeys(declared("OUTPUT_KINDS"), ("rank", "execution_id")),
    "rank_end": ("rank", "status"),
    "end": ("execution_id",),
    "undone": ("execution_id", "ranks"),
    "redone": ("execution_id", "ranks"),
    "note": (),
}

_OF_RANKS = frozenset(kind for kind, needed in _NEEDED.items() if "rank" in needed)


def is_wide(header: Header) -> bool:
    """Whether a header belongs to a record of many ranks."""
    return header.get("ranks") is not None and header["kind"] in _OF_RANKS


def is_numbered(header: Header) -> bool:
    """Whether a record has a number and a kind: all that is needed to pass it on in order."""
    return _is_count(header.get("seq"), 1) and _is_text(header.get("kind"))


def is_sound(header: Header, world_size: int = MAX_RANKS) -> bool:
    """Whether a record's header has all required fields, with values in the range of a group of that size.

    Readers treat other records as damaged and skip them.
    """
    if not is_numbered(header) or header.get("at") is None:
        return False
    for name in _NEEDED.get(header["kind"], ()):
        if header.get(name) is None and not (name == "rank" and header.get("ranks") is not None):
            return False
    lists = _LISTS if is_wide(header) else {}
    for name, value in header.items():
        check = lists.get(name) or _CHECKS.get(name)
        if value is not None and check is not None and not check(value, world_size):
            return False
    return _has_as_many(header) if lists else True


def _has_as_many(header: Header) -> bool:
    """Whether the lists of a wide record have an entry for each of its ranks."""
    number = len(RankSet.from_text(header["ranks"]))
    return "rank" not in header and all(len(header[name]) == number for name in _LISTS if header.get(name) is not None)


def _is_count(value: Any, least: int = 0) -> bool:
    return type(value) is int and least <= value < MAX_SEQ


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def is_time(value: Any) -> bool:
    """Whether a value is a valid time, or number of seconds, of a record."""
    return type(value) in _NUMBERS and -MAX_SEQ < value < MAX_SEQ


def are_times(values: Sequence[Any]) -> bool:
    """Whether each of many values is a valid time or None."""
    return all(value is None or (type(value) in _NUMBERS and -MAX_SEQ < value < MAX_SEQ) for value in values)


def _is_rank_set(value: Any, world_size: int) -> bool:
    try:
        return isinstance(value, str) and bool(RankSet.from_text(value, world_size))
    except ValueError:
        return False


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(entry) is int and 0 <= entry < MAX_SEQ for entry in value)


# In wide records.
_LISTS: dict[str, Callable[[Any, int], bool]] = {
    "seconds": lambda value, _: isinstance(value, list) and are_times(value),
    "sizes": lambda value, _: _are_counts(value),
}
_CHECKS: dict[str, Callable[[Any, int], bool]] = {
    "at": lambda value, _: is_time(value),
    "seconds": lambda value, _: is_time(value),
    "rank": lambda value, world_size: type(value) is int and 0 <= value < world_size,
    "ranks": _is_rank_set,
    "name": lambda value, _: value in STREAMS,
    "execution_id": lambda value, _: _is_text(value),
    "execution_count": lambda value, _: _is_count(value),
    "num_ranks": lambda value, _: _is_count(value, 1),
    "cell_id": lambda value, _: _is_text(value),
    "notebook": lambda value, _: _is_text(value),
    "owner": lambda value, _: _is_text(value),
    "status": lambda value, _: _is_text(value),
    "state": lambda value, _: _is_text(value),
}
