"""What is written beside names, in the order in which they are put back: each by its kind and its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jupyter_dist.rank.state import reasons

from . import callbacks, settings
from .modules import library, registries, values


class Part(NamedTuple):
    """A kind of state: how to take all of that kind by name, how to put it back, and how users call one."""

    take: Callable[[Any], Mapping[str, Any]]
    put_back: Callable[[Any, Mapping[str, Any]], list[str]] | None  # None: reading.py prepares it
    title: str
    is_made: bool = False  # its containers are made for that: no name has them


PARTS: dict[str, Part] = {
    "module": Part(values.take, None, "{}"),
    "attribute": Part(library.take_attributes, library.put_back_attributes, "{}"),
    "logger": Part(callbacks.take_loggers, callbacks.put_back_loggers, "logging.getLogger('{}')", True),
    "hooks": Part(callbacks.take_hooks, callbacks.put_back_hooks, "hooks of all modules", True),
    "event": Part(callbacks.take_events, callbacks.put_back_events, "get_ipython().events, {}"),
    "registry": Part(registries.take, registries.put_back, "what cells added to {}"),
    "setting": Part(settings.take_others, settings.put_back_others, "the setting '{}'", True),
}
_WHOLE = frozenset(("hooks",))  # kinds of which there is one


def remember(shell: Any) -> None:
    """Remember the state of the process before the first cell."""
    registries.remember(shell)
    values.remember()
    callbacks.remember()
    settings.remember()


def take(shell: Any) -> dict[str, Any]:
    """Return all parts, by their keys."""
    found: dict[str, Any] = {}
    for kind, part in PARTS.items():
        taken = part.take(shell)
        found.update({kind: taken} if kind in _WHOLE else {f"{kind} {name}": one for name, one in taken.items()})
    return found


def of_kind(kind: str, saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of this kind by their names."""
    return {key[len(kind) + 1 :]: value for key, value in saved.items() if key.startswith(f"{kind} ")}


def put_back(shell: Any, saved: Mapping[str, Any]) -> list[str]:
    """Put back what was read; return sentences on what cannot be. Does not raise."""
    notes = []
    for kind, part in PARTS.items():
        of_this = saved.get(kind) if kind in _WHOLE else of_kind(kind, saved)
        if part.put_back is None or of_this is None:
            continue
        try:
            notes += part.put_back(shell, of_this)
        except Exception as err:  # of a library of another version
            notes.append(f"{part.title.format('...')} could not be restored: {reasons.of(err)}.")
    return notes


def is_made(key: str) -> bool:
    """Whether the containers of a part are made for that."""
    kind = key.partition(" ")[0]
    return kind in PARTS and PARTS[kind].is_made


def title_of(key: str) -> str:
    """Return the name of a part for users."""
    kind, _, name = key.partition(" ")
    return PARTS[kind].title.format(name.replace(":", ".")) if kind in PARTS else key
