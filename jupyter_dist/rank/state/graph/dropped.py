"""Attributes that inherited pickling leaves out, written beside their object.

torch's Optimizer writes three of its attributes, so an optimizer of the user loses its own, and each its hooks. A class
that defines its pickling itself knows its attributes; with inherited pickling there may be more.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import MethodType, ModuleType
from typing import Any

import cloudpickle
from traitlets import EventHandler, HasTraits

from jupyter_dist.rank.state.process.modules.own import is_users
from jupyter_dist.rank.state.process.modules.values import PLAIN

from .special import slot_names, slots_of

_METHODS = ("__reduce_ex__", "__reduce__", "__getstate__")
_OTHERWISE = (type, enum.Enum, ModuleType, BaseException)  # are the same again, or have reducers of ours
_CONTAINERS = (OrderedDict, dict, list, set, tuple)
_MISSING = object()
_NUM_PARTS = 6  # of what __reduce_ex__ may return


class DroppedAttributes:
    """Adds left-out attributes to reduced objects.

    Attributes:
        notes: what cannot be written, either.
    """

    def __init__(self, can_be_written: Callable[[Any], bool], notes: set[str]) -> None:
        self._can_be_written = can_be_written
        self._notes = notes

    def reduce(self, value: Any, kind: type) -> Any:
        """Reduce an object of a class that inherits its pickling with all of its attributes; NotImplemented: as is."""
        attributes = _attributes_of(value)
        if not attributes:
            return NotImplemented
        reduced = value.__reduce_ex__(5)
        if type(reduced) is not tuple:
            return reduced
        maker, arguments, state, items, pairs, setter = (reduced + (None,) * _NUM_PARTS)[:_NUM_PARTS]
        fields, slots = (*state, None, None)[:2] if type(state) is tuple else (state, None)
        if type(fields) is not dict and not is_users(kind.__module__):
            return reduced  # such as a module of torch.fx, which is made again from its code
        known = [name for part in (fields, slots) if type(part) is dict for name in part]
        missing = attributes.keys() - known
        dropped = {name: attributes[name] for name in sorted(missing) if self._takes(value, name, attributes[name])}
        observers = [one for one in _observers_of(value, attributes) if self._takes(value, "_trait_notifiers", one[0])]
        if not dropped and not observers:
            return reduced
        return maker, arguments, (state, setter, dropped, observers), items, pairs, set_all

    def _takes(self, owner: Any, name: str, value: Any) -> bool:
        if type(value) in PLAIN or (type(value) in _CONTAINERS and not value):
            return True
        if type(value) is MethodType and value.__self__ is owner:  # as schedulers wrap `step`: they do it again
            return False
        if self._can_be_written(value):
            return True
        if is_users(type(owner).__module__):
            self._notes.add(
                f"was saved without its attribute '{name}', which its class leaves out: it cannot be pickled"
            )
        return False


Observer = tuple[Any, str, str]  # a function, the trait, and the kind of change


def _observers_of(value: Any, attributes: Mapping[str, Any]) -> list[Observer]:
    """Return the functions that observe a widget or another object with traits, but for its class's own."""
    if not issubclass(type(value), HasTraits):
        return []
    notifiers = attributes.get("_trait_notifiers") or {}
    return [
        (function, name, kind)
        for name, kinds in notifiers.items()
        for kind, called in kinds.items()
        for function in called
        if not isinstance(function, EventHandler) and getattr(function, "__self__", None) is not value
    ]


def set_all(value: Any, saved: tuple[Any, Any, Mapping[str, Any], list[Observer]]) -> None:
    """Set the state of an object as its class does, and then the attributes that are not there by that."""
    state, setter, dropped, observers = saved
    if state is not None:
        _set_state(value, state, setter)
    slots = slot_names(type(value))
    for name, one in dropped.items():
        now = getattr(value, name, _MISSING) if name in slots else value.__dict__.get(name, _MISSING)
        if now is _MISSING or (type(now) is type(one) and isinstance(now, (dict, list, set)) and not now):
            if name in slots:
                object.__setattr__(value, name, one)
            else:
                value.__dict__[name] = one
    for function, trait, kind in observers:
        value.observe(function, trait, kind)


def _set_state(value: Any, state: Any, setter: Any) -> None:
    if setter is not None:
        setter(value, state)
    elif hasattr(value, "__setstate__"):
        value.__setstate__(state)
    else:
        fields, slots = state if type(state) is tuple else (state, None)
        value.__dict__.update(fields or {})
        for name, one in (slots or {}).items():
            setattr(value, name, one)


def _attributes_of(value: Any) -> dict[str, Any] | None:
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        found = {}
    return {**found, **slots_of(value)} if type(found) is dict else None


def inherits_pickling(kind: type) -> bool:
    """Whether a class has a way of pickling that is of a class above it."""
    if issubclass(kind, _OTHERWISE) or kind in cloudpickle.Pickler.dispatch_table:
        return False
    for method in _METHODS:
        definer = next((one for one in kind.__mro__ if method in vars(one)), object)
        if definer is not object:
            return definer is not kind
    return False
