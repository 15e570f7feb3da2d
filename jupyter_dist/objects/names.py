"""Describes the variables of a rank for a program: names, types and shapes, without running code of their classes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

MAX_VALUE_CHARS = 80
# The types themselves, no subclasses, which may override `len` and `shape`.
_SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset)
_PLAIN = (int, float, complex, bool, type(None))
_SHAPED = {
    "torch": ("Tensor",),
    "torch.nn.parameter": ("Parameter",),
    "numpy": ("ndarray",),
    "pandas": ("DataFrame", "Series"),
}


def show(namespace: Mapping[str, Any], hidden: Mapping[str, Any], prefix: str, max_names: int) -> None:
    """Print the variables as JSON: [[name, type, detail]], and how many are left out."""
    shown = [
        name
        for name, value in sorted(namespace.items())
        if name.startswith(prefix) and not name.startswith("_") and hidden.get(name, hidden) is not value
        # Not isinstance, which asks the value's own `__class__`.
        if not issubclass(type(value), ModuleType)
    ]
    described = [[name, type_name(namespace[name]), detail(namespace[name])] for name in shown[:max_names]]
    print(json.dumps({"variables": described, "left_out": len(shown) - len(described)}))  # noqa: T201  (to the cell's output)


def type_name(value: Any) -> str:
    """Return the name of the value's type."""
    kind = type(value)
    # As stored: a metaclass may define what these attributes return.
    module, name = (type.__dict__[field].__get__(kind) for field in ("__module__", "__qualname__"))
    return name if module in ("builtins", "__main__") else f"{module}.{name}"


def detail(value: Any) -> str:
    """Return the shape of an array, the length of a collection, or a number as text; else an empty text."""
    kind = type(value)
    if kind in _PLAIN:
        text = repr(value) if kind is not int or abs(value) < 10**40 else f"about 2**{value.bit_length()}"
        return text[:MAX_VALUE_CHARS]
    if kind in _SIZED:
        return f"{len(value)} {'characters' if kind is str else 'bytes' if kind in (bytes, bytearray) else 'items'}"
    for module, names in _SHAPED.items():
        loaded = sys.modules.get(module)
        if any(kind is getattr(loaded, name, None) for name in names):
            return _shape(value)
    return ""


def _shape(value: Any) -> str:
    parts = [f"shape {tuple(value.shape)}"]
    parts += [str(getattr(value, name)) for name in ("dtype", "device") if hasattr(value, name)]
    return ", ".join(parts)
