"""Numbers of collectives: each process group counts the collectives it has begun, separately for each backend.

gloo counts each send and recv, too, which only two ranks have: these are counted here, and left out.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from jupyter_dist.rank.collectives import torch_compat

_GLOO = "gloo"
_messages: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # that gloo has counted, by process group


def name_of_group(group: Any) -> str:
    """Return torch's name of a process group, which is the same on its ranks; `group` is as in `describe_group`."""
    return str(torch_compat.names_of_groups().get(torch_compat.group_of(group), ""))


def counts() -> dict[str, int]:
    """Return how many collectives were begun, by `counter_of`, where torch counts them."""
    found = {}
    for group, name in torch_compat.names_of_groups().items():
        backends = torch_compat.backends_of(group)
        for backend in backends if len(backends) > 1 else [None]:
            number = _number_of(group if backend is None else backends[backend])
            if number is not None:
                counter = str(name) if backend is None else counter_of(str(name), backend)
                found[counter] = number - (_messages.get(group, 0) if backend in (None, _GLOO) else 0)
    return found


def count_of_gloo(group: Any) -> int | None:
    """Return the number that gloo counts in a process group, with messages; None if torch does not count."""
    backends = torch_compat.backends_of(group)
    if _GLOO not in backends:
        return None
    return _number_of(backends[_GLOO] if len(backends) > 1 else group)


def note_message(group: Any, before: int | None) -> None:
    """Count a message, where gloo has counted one; `before` is the number of gloo before the message."""
    after = count_of_gloo(group)
    if before is not None and after is not None and after > before:
        _messages[group] = _messages.get(group, 0) + 1


def forget_messages() -> None:
    """Forget the messages of process groups that were re-created: gloo counts from 0."""
    _messages.clear()


def collective_seq() -> int | None:
    """Return how many collectives were begun on the default process group; None if torch does not count them."""
    world = torch_compat.group_of(None)
    backends = torch_compat.backends_of(world)
    numbers = [torch_compat.number_of(backend) for backend in backends.values()]
    if not numbers or None in numbers:  # before torch 2.9 only a group of one backend counts
        return torch_compat.number_of(world)
    return sum(number for number in numbers if number is not None)


def _number_of(counting: Any) -> int | None:
    """Return the number of a backend, or of a group of one backend.

    A group's own number is the number of its first backend, which is replaced when the group is re-created.
    """
    backends = list(torch_compat.backends_of(counting).values())
    number = torch_compat.number_of(backends[0]) if backends else None
    return torch_compat.number_of(counting) if number is None else number


def counter_of(name: str, backend: str) -> str:
    """Return the name of the counter of collectives: the process group, or its backend if the group has several."""
    return name if len(torch_compat.backends_of(torch_compat.group_of(name))) < 2 else f"{name}/{backend}"
