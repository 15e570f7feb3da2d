"""Which names of a rank stand for what all ranks must use together: wrapped models, trainers. Looks at types only.

The agent asks before a cell that uses one is sent to some ranks (agent/group/needs.py).
"""

from __future__ import annotations

from typing import Any

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
_known: dict[type, str | None] = {}  # by type: classes of cells are few, and a rank has thousands of values


def kinds_of(namespace: dict[Any, Any]) -> dict[str, str]:
    """Return the kind by name. No code of the values or their classes runs."""
    found: dict[str, str] = {}
    for name, value in list(namespace.items()):
        kind = _kind(type(value))
        if kind is not None and type(name) is str and not name.startswith("_") and len(found) < MAX_NAMES:
            found[name] = kind
    return found


def _kind(cls: type) -> str | None:
    if cls not in _known:
        if len(_known) > 1000:
            _known.clear()
        names = ((base.__name__, str(base.__module__).partition(".")[0]) for base in type.mro(cls))
        _known[cls] = next((KINDS[name] for name in names if name in KINDS), None)
    return _known[cls]
