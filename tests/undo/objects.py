"""Objects that hold each other, and changes of them at random. Few imports: undo follows what a user's module names."""

from __future__ import annotations

import random
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any


class Plain:
    """An instance with a dictionary."""


class Slotted:
    """An instance without one."""

    __slots__ = ("left", "right")


class MyList(list):
    """A list with attributes."""


class MyDict(dict):
    """A dictionary with attributes."""


def function(item: Any = None) -> Any:
    return item


def _closure(item: Any) -> Any:
    def inner() -> Any:
        return item

    return inner


MAKERS: list[Any] = [
    list, dict, set, deque, bytearray, Plain, Slotted, MyList, MyDict, OrderedDict, Counter,
    lambda: defaultdict(list), lambda: array("i", [1, 2]), lambda: _closure([1]), lambda: (lambda x=[1]: x),
]  # fmt: skip


def build(seed: int, size: int) -> dict[str, Any]:
    """Return names of objects that hold each other."""
    chance = random.Random(seed)
    objects = [chance.choice(MAKERS)() for _ in range(size)]
    for _ in range(2 * size):
        fill(chance, chance.choice(objects), chance.choice(objects))
    return {f"n{number}": one for number, one in enumerate(objects) if chance.random() < 0.6} | {"first": objects[0]}


def fill(chance: random.Random, one: Any, other: Any) -> None:
    """Put an object into another one."""
    number = chance.randrange(5)
    if isinstance(one, list | deque):
        one.append(other)
    elif isinstance(one, dict):
        one[number] = number if isinstance(one, Counter) else other
    elif isinstance(one, set):
        one.add((number, id(other)))
    elif isinstance(one, bytearray | array):
        one.append(number)
    elif isinstance(one, Slotted):
        setattr(one, chance.choice(Slotted.__slots__), other)
    elif isinstance(one, type(function)) and one.__closure__:
        one.__closure__[0].cell_contents = other
    elif isinstance(one, type(function)):
        one.__defaults__ = (other,)
    if hasattr(one, "__dict__") and not isinstance(one, type(function)):
        setattr(one, f"a{number}", other)


def spoil(chance: random.Random, one: Any) -> None:  # noqa: C901 - a branch per type
    """Change an object in a way that its type has."""
    if isinstance(one, deque):
        one.rotate(1)
    elif isinstance(one, list):
        chance.choice([one.clear, one.reverse, lambda: one.extend(one[:2]), lambda: one.__delitem__(slice(0, 1))])()
    elif isinstance(one, OrderedDict) and one:
        one.move_to_end(next(iter(one)))
    elif isinstance(one, dict):
        items = list(one.items())[::-1]
        one.clear()
        one.update(items[1:])
    elif isinstance(one, set):
        one.clear()
    elif isinstance(one, bytearray | array):
        del one[:1]
    elif isinstance(one, Slotted):
        for slot in Slotted.__slots__:
            if hasattr(one, slot):
                delattr(one, slot)
    elif isinstance(one, type(function)):
        one.extra = 1
    if isinstance(one, Plain):
        one.__dict__ = dict(one.__dict__)
    if type(one) is Plain:
        one.__class__ = chance.choice([Plain, Other])


class Other(Plain):
    """The class of a changed instance."""
