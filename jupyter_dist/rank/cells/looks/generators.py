"""Random generators that cells have: of Python, NumPy and torch."""

from __future__ import annotations

import _random
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch

from jupyter_dist.rank.cells.values.opening import is_kind_of


class Generator(NamedTuple):
    """A random generator of the user's."""

    value: Any  # that has the state
    read: Callable[[], Any]  # returns its state
    write: Callable[[Any], None]


def generator_of(value: Any) -> Generator | None:
    """Return how to read and set the state of a random generator; None if the value is none, or has no state."""
    if is_kind_of(value, torch.Generator):
        return Generator(value, value.get_state, value.set_state)
    if is_kind_of(value, _random.Random):
        return Generator(value, partial(_get_state, value), partial(_set_state, value))
    numpy = sys.modules.get("numpy.random")
    if numpy is None:
        return None
    if is_kind_of(value, numpy.RandomState):
        return Generator(value, partial(value.get_state, legacy=False), value.set_state)
    if is_kind_of(value, numpy.Generator):
        value = value.bit_generator
    if is_kind_of(value, numpy.BitGenerator):
        return Generator(value, lambda: value.state, lambda state: setattr(value, "state", state))
    return None


# Of Python's generator without its subclasses, which keep the rest in attributes.
_get_state, _set_state = _random.Random.getstate, _random.Random.setstate
