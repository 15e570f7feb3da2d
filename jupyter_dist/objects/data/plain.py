"""Numbers, texts, containers, dates: the kinds that need no other package."""

from __future__ import annotations

import builtins
import datetime
import decimal
import fractions
import pathlib
import re
import types
import uuid
import zoneinfo
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .graph import DataReader, DataWriter, Item, NotDataError, ObjectKind, text, whole

_HEX = re.compile(r"-?[0-9a-f]{1,4194304}")
_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,40}(/[A-Za-z0-9_+-]{1,40}){0,3}")
_MAX_FRACTION_BITS = 1 << 16  # making one computes a common divisor
_FACTORIES: dict[str | None, Any] = {
    kind.__name__: kind
    for kind in (int, float, complex, str, bytes, bool, list, tuple, set, dict, OrderedDict, Counter)
} | {None: None}
_PATHS = (type(pathlib.Path()), pathlib.PurePosixPath, pathlib.PureWindowsPath)
_ERRORS: dict[str, type[BaseException]] = {
    name: found
    for name, found in vars(builtins).items()
    if isinstance(found, type) and issubclass(found, BaseException)
}


# -- containers that can contain themselves ---------------------------------------------------------------


def _items(writer: DataWriter, container: Sequence[Any]) -> list[Any]:
    return [writer.items(list(container))]


def _pairs(writer: DataWriter, found: dict[Any, Any]) -> list[Any]:
    return [writer.items(list(found)), writer.items(list(found.values()))]


def _update(reader: DataReader, found: dict[Any, Any], keys: Any, values: Any) -> None:
    dict.update(found, zip(reader.all(keys), reader.all(values), strict=True))  # not Counter's own, which adds


def _container(
    cls: Callable[[], Any], fill: Callable[..., None], parts: Callable[..., list[Any]] = _items
) -> ObjectKind:
    return ObjectKind(getattr(cls, "__name__", ""), parts, lambda _reader, *_parts: cls(), fill)


def _fill_list(reader: DataReader, found: list[Any], items: Any) -> None:
    found.extend(reader.all(items))


def _fill_set(reader: DataReader, found: set[Any], items: Any) -> None:
    found.update(reader.all(items))


def _ordered(writer: DataWriter, found: OrderedDict[Any, Any]) -> list[Any]:
    return [*_pairs(writer, found), *_pairs(writer, vars(found))]  # a state_dict has its versions there


def _fill_ordered(reader: DataReader, found: OrderedDict[Any, Any], *parts: Any) -> None:
    keys, values, names, attributes = map(reader.all, parts)
    found.update(zip(keys, values, strict=True))
    vars(found).update(zip(map(text, names), attributes, strict=True))


def _make_deque(_reader: DataReader, _found: Any, most: Any) -> deque[Any]:
    return deque(maxlen=None if most is None else whole(most, 0))


def _fill_deque(reader: DataReader, found: deque[Any], items: Any, _most: Any) -> None:
    found.extend(reader.all(items))


def _fill_namespace(reader: DataReader, found: types.SimpleNamespace, keys: Any, values: Any) -> None:
    vars(found).update(zip(map(text, reader.all(keys)), reader.all(values), strict=True))


def _namespace(writer: DataWriter, found: types.SimpleNamespace) -> list[Any]:
    return _pairs(writer, vars(found))


# -- what is made at once ---------------------------------------------------------------------------------


def _make_default(reader: DataReader, factory: Any, keys: Any, values: Any) -> defaultdict[Any, Any]:
    """Make a defaultdict when its values exist: Python frees nested ones with a C stack, so their depth is limited."""
    if factory not in _FACTORIES:
        raise NotDataError("a defaultdict with another function")
    made: defaultdict[Any, Any] = defaultdict(_FACTORIES[factory])
    _update(reader, made, keys, values)
    return made


def _default(writer: DataWriter, found: defaultdict[Any, Any]) -> list[Any]:
    for name, factory in _FACTORIES.items():
        if found.default_factory is factory:
            return [name, *_pairs(writer, found)]
    raise NotDataError("a defaultdict with a function of yours; dict(x) has its data")


def _bytes(writer: DataWriter, found: bytes | bytearray) -> list[Any]:
    return [writer.data(memoryview(found))]


def _make_int(_reader: DataReader, digits: Any) -> int:
    if not _HEX.fullmatch(text(digits)):
        raise NotDataError("a number that is none")
    return int(digits, 16)


def _make_complex(reader: DataReader, real: Any, imag: Any) -> complex:
    return complex(reader.exact(real, float), reader.exact(imag, float))


def _make_slice(reader: DataReader, *parts: Item) -> slice:
    start, stop, step = map(reader.at, parts)
    return slice(start, stop, step)


def _make_range(reader: DataReader, *parts: Item) -> range:
    start, stop, step = (reader.exact(part, int) for part in parts)
    return range(start, stop, step)


def _error(writer: DataWriter, found: BaseException) -> list[Any]:
    notes = [note for note in getattr(found, "__notes__", ()) if type(note) is str]
    return [type(found).__name__, writer.items(found.args), notes]


def _make_error(reader: DataReader, name: Any, arguments: Any, notes: Any) -> BaseException:
    made = _ERRORS[text(name)](*reader.all(arguments))
    if notes:
        made.__notes__ = [text(note) for note in reader.all(notes)]
    return made


# -- dates and exact numbers ------------------------------------------------------------------------------


def _clock(writer: DataWriter, found: datetime.datetime | datetime.time) -> list[Any]:
    return [found.hour, found.minute, found.second, found.microsecond, writer.item(found.tzinfo), found.fold]


def _datetime(writer: DataWriter, found: datetime.datetime) -> list[Any]:
    return [found.year, found.month, found.day, *_clock(writer, found)]


def zone(reader: DataReader, item: Item) -> datetime.tzinfo | None:
    """Return a time zone of these kinds, or None."""
    found: datetime.tzinfo | None = reader.exact(item, datetime.timezone, zoneinfo.ZoneInfo, type(None))
    return found


def _make_clock(cls: Callable[..., Any], reader: DataReader, *parts: Any) -> Any:
    *numbers, tz, fold = parts
    return cls(*map(whole, numbers), tzinfo=zone(reader, tz), fold=whole(fold, 0, 1))


def _timezone(writer: DataWriter, found: datetime.timezone) -> list[Any]:
    offset, *name = found.__getinitargs__()  # type: ignore[attr-defined]  # missing in its type
    return [writer.item(offset), *name]


def _make_timezone(reader: DataReader, offset: Item, *name: Any) -> datetime.timezone:
    return datetime.timezone(reader.exact(offset, datetime.timedelta), *map(text, name))


def _zone_info(_writer: DataWriter, found: zoneinfo.ZoneInfo) -> list[Any]:
    if found.key is None:
        raise NotDataError("a time zone of a file")
    return [found.key]


def _make_zone_info(_reader: DataReader, key: Any) -> zoneinfo.ZoneInfo:
    if not _ZONE.fullmatch(text(key)):
        raise NotDataError("a time zone that is none")
    return zoneinfo.ZoneInfo(key)


def _make_fraction(reader: DataReader, *parts: Item) -> fractions.Fraction:
    numbers = [reader.exact(part, int) for part in parts]
    if any(number.bit_length() > _MAX_FRACTION_BITS for number in numbers):
        raise NotDataError(f"a fraction with more than {_MAX_FRACTION_BITS} bits")
    numerator, denominator = numbers
    return fractions.Fraction(numerator, denominator)


def _words(name: str, cls: Callable[[str], Any], write: Callable[[Any], str] = str) -> ObjectKind:
    return ObjectKind(name, lambda _writer, found: [write(found)], lambda _reader, words: cls(text(words)))


def _constant(name: str, value: Any) -> ObjectKind:
    return ObjectKind(name, lambda _writer, _found: [], lambda _reader: value)


KINDS: dict[type, ObjectKind] = {
    list: _container(list, _fill_list),
    set: _container(set, _fill_set),
    dict: _container(dict, _update, _pairs),
    Counter: _container(Counter, _update, _pairs),
    OrderedDict: _container(OrderedDict, _fill_ordered, _ordered),
    deque: ObjectKind("deque", lambda writer, found: [*_items(writer, found), found.maxlen], _make_deque, _fill_deque),
    types.SimpleNamespace: _container(types.SimpleNamespace, _fill_namespace, _namespace),
    defaultdict: ObjectKind("defaultdict", _default, _make_default),
    tuple: ObjectKind("tuple", _items, lambda reader, items: tuple(reader.all(items))),
    frozenset: ObjectKind("frozenset", _items, lambda reader, items: frozenset(reader.all(items))),
    bytes: ObjectKind("bytes", _bytes, lambda reader, place: bytes(reader.data(place))),
    bytearray: ObjectKind("bytearray", _bytes, lambda reader, place: bytearray(reader.data(place))),
    int: ObjectKind("int", lambda _writer, found: [f"{found:x}"], _make_int),
    complex: ObjectKind("complex", lambda _writer, found: [found.real, found.imag], _make_complex),
    slice: ObjectKind("slice", lambda writer, s: writer.each(s.start, s.stop, s.step), _make_slice),
    range: ObjectKind("range", lambda writer, r: writer.each(r.start, r.stop, r.step), _make_range),
    type(...): _constant("ellipsis", ...),
    type(NotImplemented): _constant("NotImplemented", NotImplemented),
    datetime.date: ObjectKind(
        "date", lambda _writer, d: [d.year, d.month, d.day], lambda _reader, *parts: datetime.date(*map(whole, parts))
    ),
    datetime.datetime: ObjectKind("datetime", _datetime, partial(_make_clock, datetime.datetime)),
    datetime.time: ObjectKind("time", _clock, partial(_make_clock, datetime.time)),
    datetime.timedelta: ObjectKind(
        "timedelta",
        lambda _writer, d: [d.days, d.seconds, d.microseconds],
        lambda _reader, *parts: datetime.timedelta(*map(whole, parts)),
    ),
    datetime.timezone: ObjectKind("timezone", _timezone, _make_timezone),
    zoneinfo.ZoneInfo: ObjectKind("ZoneInfo", _zone_info, _make_zone_info),
    decimal.Decimal: _words("Decimal", decimal.Decimal),
    fractions.Fraction: ObjectKind(
        "Fraction", lambda writer, found: writer.each(found.numerator, found.denominator), _make_fraction
    ),
    uuid.UUID: _words("UUID", uuid.UUID),
    **{cls: _words(cls.__name__, cls) for cls in _PATHS},
}
_ERROR = ObjectKind("error", _error, _make_error)
NAMED = {kind.name: kind for kind in (*KINDS.values(), _ERROR)}


def kind_of(cls: type) -> ObjectKind | None:
    """Return the kind of objects of this type."""
    return KINDS.get(cls) or (_ERROR if _ERRORS.get(cls.__name__) is cls else None)
