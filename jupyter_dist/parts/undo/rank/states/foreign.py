"""Objects with fields in C or Rust: locks, contexts of decimal, and the tables of pandas and polars."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from jupyter_dist.rank.cells.values.opening import attributes_of, module_of, mro_of, name_of

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


_POLARS = {("polars.dataframe.frame", "DataFrame"): "_df", ("polars.series.series", "Series"): "_s"}
_PLANS = frozenset({"PyLazyFrame", "PyExpr", "PySelector", "PyDataTypeExpr"})
_GLANCES = 15
_MUCH = 256 << 20  # bytes that are not compared after a cell


class PolarsState(Memento):
    """The contents of a frame or series of polars: a clone, which shares their memory until one of them is changed."""

    phase: ClassVar[int] = 1  # after its attributes, one of which has the contents
    __slots__ = ("_field", "saved")

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self._field = field_of_polars(value)
        self.saved = self.contents.clone()

    @property
    def contents(self) -> Any:
        """The contents of now, which methods of polars change in place."""
        return attributes_of(self.value)[self._field]  # type: ignore[index]

    def differs(self) -> bool:
        """Return True: a clone costs less than to compare the values."""
        return True

    def has_changed(self) -> bool:
        """Whether names, types or values are others now; much is not compared."""
        now, saved = self.contents, self.saved
        if saved.estimated_size() > _MUCH:
            return True
        if self._field == "_s":
            return not now.equals(saved, True, True, True)  # with types, names and nulls
        return now.dtypes() != saved.dtypes() or not now.equals(saved, True)

    def restore(self) -> None:
        """Replace the contents by a clone of the kept ones."""
        attributes_of(self.value)[self._field] = self.saved.clone()  # type: ignore[index]

    def objects(self) -> list[Any]:
        """Return the Python objects in it."""
        columns = [self.saved] if self._field == "_s" else map(_in_rust, self.saved.get_columns())
        return [one for column in columns if str(column.dtype()) == "Object" for one in column.to_list()]


def _in_rust(column: Any) -> Any:
    """Return the contents of a column, which some versions of polars have wrapped."""
    field = field_of_polars(column)
    return column if field is None else attributes_of(column)[field]  # type: ignore[index]


def glance_at_polars(contents: Any) -> list[Any]:
    """Return the names, types and size of the contents of a frame or series, and a few values."""
    is_frame = hasattr(contents, "get_columns")
    length = contents.height() if is_frame else contents.len()
    read = contents.row_tuple if is_frame else contents.get_index
    places = sorted({place * (length - 1) // _GLANCES for place in range(_GLANCES + 1)}) if length else []
    values = [read(place) for place in places]
    names = [contents.columns(), contents.dtype_strings()] if is_frame else [contents.name(), str(contents.dtype())]
    return [names, length, values]


def is_plan(kind: type) -> bool:
    """Whether instances of a class in Rust are plans of polars: nothing changes them, and they may call functions."""
    return module_of(kind) == "builtins" and name_of(kind) in _PLANS


def field_of_polars(value: Any) -> str | None:
    """Return the attribute in which a frame or series of polars has its contents; None for anything else."""
    if "polars" not in sys.modules:
        return None
    kinds = [_POLARS.get((module_of(kind), name_of(kind))) for kind in mro_of(value)]
    field = next(filter(None, kinds), None)
    has_contents = field is not None and hasattr((attributes_of(value) or {}).get(field), "clone")
    return field if has_contents else None
