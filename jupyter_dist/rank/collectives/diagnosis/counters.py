"""Numbers of collectives: each process group counts the collectives it has begun, separately for each backend."""

from __future__ import annotations

from typing import Any

from jupyter_dist.rank.collectives import torch_compat


def name_of_group(group: Any) -> str:
    """Return torch's name of a process group, which is the same on its ranks; `group` is as in `describe_group`."""
    return str(torch_compat.names_of_groups().get(torch_compat.group_of(group), ""))


def counts() -> dict[str, int]:
    """Return how many collectives were begun, by `counter_of`, where torch counts them."""
    found = {}
    for group, name in torch_compat.names_of_groups().items():
        backends = torch_compat.backends_of(group)
        several = {counter_of(str(name), backend): counting for backend, counting in backends.items()}
        for counter, counting in (several if len(several) > 1 else {str(name): group}).items():
            number = _number_of(counting)
            if number is not None:
                found[counter] = number
    return found


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
