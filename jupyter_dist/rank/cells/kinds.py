"""Which names of a rank stand for what all ranks must use together: wrapped models, trainers. Looks at types only.

The agent asks before a cell that uses one is sent to some ranks (agent/group/needs.py).
"""

from __future__ import annotations

from typing import Any
from weakref import ref

MAX_NAMES = 200
# The kind of a class, by its name and the package that it is from; also of classes derived from it.
KINDS = {
    ("DistributedDataParallel", "torch"): "model",
    ("FullyShardedDataParallel", "torch"): "model",
    ("FSDPModule", "torch"): "model",
    ("Trainer", "lightning"): "trainer",
    ("Trainer", "pytorch_lightning"): "trainer",
    ("Trainer", "transformers"): "trainer",
    ("Accelerator", "accelerate"): "accelerator",
}
# By the id of a type, with a reference that tells whether that is still it: classes of cells are few, and a rank has
# thousands of values. A dictionary by type would call the hash of its metaclass, and keep it alive.
_known: dict[int, tuple[ref[type], str | None]] = {}
_get_name = type.__dict__["__name__"].__get__
_get_module = type.__dict__["__module__"].__get__


def kinds_of(namespace: dict[Any, Any]) -> dict[str, str]:
    """Return the kind by name. No code of the values, their classes or metaclasses runs."""
    found: dict[str, str] = {}
    for name, value in list(namespace.items()):
        kind = _kind(type(value))
        if kind is not None and type(name) is str and not name.startswith("_") and len(found) < MAX_NAMES:
            found[name] = kind
    return found


def _kind(cls: type) -> str | None:
    known = _known.get(id(cls))
    if known is None or known[0]() is not cls:
        if len(_known) > 1000:
            _known.clear()
        names = map(_names, type.__dict__["__mro__"].__get__(cls))
        known = _known[id(cls)] = (ref(cls), next((KINDS[name] for name in names if name in KINDS), None))
    return known[1]


def _names(cls: type) -> tuple[str, str]:
    """Return name and package of a class; code of a cell may have put anything into its `__module__`."""
    module = _get_module(cls)
    return _get_name(cls), module.partition(".")[0] if type(module) is str else ""
