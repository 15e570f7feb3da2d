"""Objects with fields in C: locks, contexts of decimal, and tables of pandas, whose manager exchanges its blocks."""

from __future__ import annotations

from typing import Any

from jupyter_dist.rank.cells.variables.opening import module_of, mro_of, name_of

from .mementos import Memento


class LockState(Memento):
    """Whether a lock is taken."""

    __slots__ = ("saved",)

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.saved = value.locked()

    def differs(self) -> bool:
        """Whether the lock is taken now and was free, or is free and was taken."""
        return bool(self.value.locked() != self.saved)

    def restore(self) -> None:
        """Take or release the lock."""
        if self.saved:
            self.value.acquire(blocking=False)
        else:
            self.value.release()


class DecimalState(Memento):
    """Precision, rounding, limits, traps and flags of a context of decimal numbers."""

    names = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
    __slots__ = ("saved",)

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.saved = self._now()

    def _now(self) -> list[Any]:
        value = self.value
        return [*(getattr(value, name) for name in self.names), dict(value.flags), dict(value.traps)]

    def differs(self) -> bool:
        """Whether a setting or a flag is another now."""
        return self._now() != self.saved

    def restore(self) -> None:
        """Set all of them."""
        *settings, flags, traps = self.saved
        for name, item in zip(self.names, settings, strict=True):
            setattr(self.value, name, item)
        self.value.flags.update(flags)
        self.value.traps.update(traps)


_FIELDS = ("blocks", "axes", "_known_consolidated", "_is_consolidated", "_blknos", "_blklocs", "values", "_ndarray")
_NAMES = frozenset({"BlockManager", "Block", "NumpyBlock", "NDArrayBacked"})
_MISSING: Any = object()


class PartsState(Memento):
    """The fields of a block manager, a block or an array of pandas."""

    __slots__ = ("saved",)

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.saved = self._now()
        axes = self.saved.get("axes")
        self._keep_axes(axes)

    def _keep_axes(self, axes: Any) -> None:
        if isinstance(axes, list):
            self.saved["axes"] = list(axes)

    def _now(self) -> dict[str, Any]:
        found = {name: getattr(self.value, name, _MISSING) for name in _FIELDS}
        return {name: item for name, item in found.items() if item is not _MISSING}

    def differs(self) -> bool:
        """Whether a field is another object now."""
        now = self._now()
        return any(not _is_same(now.get(name, _MISSING), item) for name, item in self.saved.items())

    def restore(self) -> None:
        """Write the fields."""
        now = self._now()
        for name, item in self.saved.items():
            if not _is_same(now.get(name, _MISSING), item):
                setattr(self.value, name, list(item) if isinstance(item, list) else item)


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
    return one is other or (isinstance(one, bool) and one == other)


def pandas_parts(value: Any) -> list[Any] | None:
    """Return the contents of an object of pandas that has fields in C; None for anything else."""
    kinds = [kind for kind in mro_of(value) if module_of(kind).startswith("pandas._libs.")]
    if not any(name_of(kind) in _NAMES for kind in kinds):
        return None
    parts: list[Any] = []
    for name in _FIELDS:
        item = getattr(value, name, None)
        parts.extend(item if isinstance(item, list | tuple) else [item])
    return parts
