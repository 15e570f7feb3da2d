"""Objects of classes that the user has allowed with `torch.serialization.add_safe_globals`, as for `torch.load`.

They get their attributes, as data; no code of the class runs.
"""

from __future__ import annotations

import enum
import sys
from typing import Any

from .graph import DataReader, DataWriter, Item, NotDataError, ObjectKind, text


class NotAllowedError(NotDataError):
    """An object of a class that the user has not allowed; the text is the class's name."""


def name_of(cls: type) -> str:
    """Return the full name of a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def _class_named(name: Any) -> type:
    serialization = sys.modules.get("torch.serialization")
    for entry in getattr(serialization, "get_safe_globals", list)():
        value, full = entry if isinstance(entry, tuple) else (entry, f"{entry.__module__}.{entry.__qualname__}")
        if full == text(name) and isinstance(value, type):
            return value
    raise NotAllowedError(text(name)[:200])


def _attributes(writer: DataWriter, found: Any) -> list[Any]:
    state = vars(found)
    return [name_of(type(found)), writer.items(list(state)), writer.items(list(state.values()))]


def _make(_reader: DataReader, name: Any, _keys: Any, _values: Any) -> Any:
    cls = _class_named(name)
    if not _is_plain(cls):
        raise NotDataError(f"attributes for a {cls.__name__}, which has more than these")
    return object.__new__(cls)


def _fill(reader: DataReader, found: Any, _name: Any, keys: Any, values: Any) -> None:
    vars(found).update(zip(map(text, reader.all(keys)), reader.all(values), strict=True))


def _make_row(reader: DataReader, name: Any, items: Any) -> Any:
    cls = _class_named(name)
    values = reader.all(items)
    if not issubclass(cls, tuple) or len(values) != len(getattr(cls, "_fields", ())):
        raise NotDataError(f"values that are no {cls.__name__}")
    return tuple.__new__(cls, values)


def _make_member(_reader: DataReader, name: Any, member: Any) -> Any:
    cls = _class_named(name)
    if not issubclass(cls, enum.Enum):
        raise NotDataError(f"a member of {cls.__name__}, which has none")
    return cls[text(member)]


def _row(writer: DataWriter, found: Any) -> list[Item]:
    return [name_of(type(found)), writer.items(tuple(found))]


def _member(_writer: DataWriter, found: enum.Enum) -> list[Item]:
    if found.name is None:
        raise NotDataError(f"a {name_of(type(found))} without a name; x.value has its number")
    return [name_of(type(found)), found.name]


_OBJECT = ObjectKind("object", _attributes, _make, _fill)
_ROW = ObjectKind("row", _row, _make_row)
_MEMBER = ObjectKind("member", _member, _make_member)
NAMED = {kind.name: kind for kind in (_OBJECT, _ROW, _MEMBER)}
_OWN_WAYS = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")


def kind_of(cls: type) -> ObjectKind | None:
    """Return the kind of objects of this class, if their attributes, values or names are all that they have."""
    if issubclass(cls, enum.Enum):
        return _MEMBER
    if issubclass(cls, tuple) and cls.__bases__ == (tuple,) and hasattr(cls, "_fields"):
        return _ROW
    return _OBJECT if _is_plain(cls) else None


def _is_plain(cls: type) -> bool:
    made: object = cls.__new__
    own = any(getattr(cls, name, None) is not getattr(object, name, None) for name in _OWN_WAYS)
    slots = any(vars(base).get("__slots__") for base in cls.__mro__)
    return made is object.__new__ and not own and not slots and bool(cls.__dictoffset__)
