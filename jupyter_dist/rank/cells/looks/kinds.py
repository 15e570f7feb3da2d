"""Finds the names of a rank for objects that all ranks must use together: wrapped models, trainers. By type only.

The agent asks before a cell that uses one is sent to some ranks (agent/group/cellcode/needs.py).
"""

from __future__ import annotations

from itertools import islice
from typing import Any
from weakref import ref

from jupyter_dist.rank.cells.values.opening import attributes_of

MAX_NAMES = 200
MAX_HELD = 32
MAX_NAME_CHARS = 200  # the header of a reply has them
# The kind of a class, by its name and the package that it is from; also of classes derived from it. A `ddp` with
# buffers is a `model`.
KINDS = {
    ("DistributedDataParallel", "torch"): "ddp",
    ("FullyShardedDataParallel", "torch"): "sharded",
    ("FSDPModule", "torch"): "sharded",
    ("Trainer", "lightning"): "trainer",
    ("Trainer", "pytorch_lightning"): "trainer",
    ("Trainer", "transformers"): "trainer",
    ("Accelerator", "accelerate"): "accelerator",
}
# By the id of a type; a reference forgets it when the type is gone. A dictionary by type would call the hash of its
# metaclass, and keep it alive.
_known: dict[int, tuple[ref[type], str | None]] = {}
_get_name = type.__dict__["__name__"].__get__
_get_module = type.__dict__["__module__"].__get__


def kinds_of(namespace: dict[Any, Any]) -> dict[str, str]:
    """Return the kind by name, also for values in dictionaries and in objects of the cells' own classes.

    These are `models[]` and `trainer.model`. No code of the values, their classes or metaclasses runs. It runs after
    every cell, and each cell of the past has left names of IPython's (`_i1`), which are passed over.
    """
    items = ((name, value) for name, value in list(namespace.items()) if type(name) is str)
    names = ((name, value) for name, value in items if len(name) <= MAX_NAME_CHARS and not name.startswith("_"))
    found = (pair for name, value in names for pair in ((name, value), *_held(name, value)))
    kinds = ((name, _kind(value)) for name, value in found)
    return dict(islice(((name, kind) for name, kind in kinds if kind is not None), MAX_NAMES))


def _held(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return the values in a small dictionary, or in an object of a class of the cells, with the names to look for."""
    if type(value) is dict:
        return [(f"{name}[]", held) for held in list(value.values())[:MAX_HELD]] if len(value) <= MAX_HELD else []
    module = _get_module(type(value))
    if type(module) is not str or module != "__main__":
        return []
    attributes = attributes_of(value) or {}
    return [(f"{name}.{key}", held) for key, held in list(attributes.items())[:MAX_HELD] if type(key) is str]


def _kind(value: Any) -> str | None:
    kind = _learn(type(value))
    # Without buffers, the forward of DDP alone exchanges nothing.
    return "model" if kind == "ddp" and (attributes_of(value) or {}).get("modules_buffers") else kind


def _learn(cls: type) -> str | None:
    key = id(cls)
    if key not in _known:
        names = map(_names, type.__dict__["__mro__"].__get__(cls))
        kind = next((KINDS[name] for name in names if name in KINDS), None)
        _known[key] = (ref(cls, lambda _: _known.pop(key, None)), kind)
    return _known[key][1]


def _names(cls: type) -> tuple[str, str]:
    """Return name and package of a class; code of a cell may have put anything into its `__module__`."""
    module = _get_module(cls)
    return _get_name(cls), module.partition(".")[0] if type(module) is str else ""
