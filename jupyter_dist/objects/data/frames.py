"""Data frames, series and indexes of pandas, column by column, and its scalars."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from .graph import DataReader, DataWriter, Item, NotDataError, ObjectKind, flag, text, whole
from .plain import zone

_UNIT = re.compile(r"s|ms|us|ns")
_FREQUENCY = re.compile(r"[A-Za-z0-9-]{1,40}")
_MASKED: dict[str, Any] = {
    **{f"{sign}Int{bits}": pd.arrays.IntegerArray for sign in ("", "U") for bits in (8, 16, 32, 64)},
    **{f"Float{bits}": pd.arrays.FloatingArray for bits in (32, 64)},
    "boolean": pd.arrays.BooleanArray,
}
_INDEXES = (pd.Index, pd.DatetimeIndex, pd.TimedeltaIndex, pd.PeriodIndex, pd.CategoricalIndex, pd.IntervalIndex)


def _frequency(value: Any) -> str:
    if not _FREQUENCY.fullmatch(text(value)):
        raise NotDataError(f"the frequency {value!r:.40}")
    return text(value)


def _counted(cls: Any, value: Any, unit: Any) -> Any:
    """Return a moment or a duration as so many units."""
    if not _UNIT.fullmatch(text(unit)):
        raise NotDataError(f"the unit {unit!r:.40}")
    return cls(whole(value), unit)


# -- columns: an array of NumPy, or one of these -----------------------------------------------------------


def _categorical(writer: DataWriter, found: Any) -> list[Any]:
    return [writer.item(found.codes), writer.item(found.categories), bool(found.ordered)]


def _make_categorical(reader: DataReader, codes: Item, categories: Item, ordered: Any) -> Any:
    index = reader.exact(categories, pd.RangeIndex, *_INDEXES)
    return pd.Categorical.from_codes(reader.exact(codes, np.ndarray), index, flag(ordered))


def _masked(writer: DataWriter, found: Any) -> list[Any]:
    return [found.dtype.name, *writer.each(found.to_numpy(found.dtype.numpy_dtype, na_value=0), found.isna())]


def _make_masked(reader: DataReader, name: Any, data: Item, mask: Item) -> Any:
    made = _MASKED[text(name)](reader.exact(data, np.ndarray), reader.exact(mask, np.ndarray))
    if made.dtype.name != name:
        raise NotDataError(f"an array of {made.dtype.name} as {name}")
    return made


def _texts(writer: DataWriter, found: Any) -> list[Any]:
    values = found.astype(object)
    values[found.isna()] = None
    return [found.dtype.storage, found.dtype.na_value is pd.NA, writer.items(list(values))]


def _make_texts(reader: DataReader, storage: Any, is_na: Any, items: Any) -> Any:
    values = reader.all(items)
    if not set(map(type, values)) <= {str, type(None)}:
        raise NotDataError("a column of texts with something else")
    has_arrow = importlib.util.find_spec("pyarrow") is not None
    options = () if flag(is_na) else (np.nan,)  # pandas before 2.3 has no other
    return pd.array(
        values, dtype=pd.StringDtype("pyarrow" if storage == "pyarrow" and has_arrow else "python", *options)
    )


def _moments(writer: DataWriter, found: Any) -> list[Any]:
    return [writer.item(found.asi8.view(f"M8[{found.unit}]")), _zone_item(writer, found.tz)]


def _zone_item(writer: DataWriter, tz: Any) -> Item:
    """Describe a time zone; one of pytz, as older versions of pandas use it, is one by its name."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415

    return writer.item(ZoneInfo(tz.zone) if type(tz).__module__.startswith("pytz") else tz)


def _make_moments(reader: DataReader, values: Item, tz: Item) -> Any:
    index = pd.DatetimeIndex(_times(reader, values, "M"))
    found = zone(reader, tz)
    return (index if found is None else index.tz_localize("UTC").tz_convert(found)).array


def _times(reader: DataReader, values: Item, kind: str) -> Any:
    found = reader.exact(values, np.ndarray)
    if found.dtype.kind != kind or found.ndim != 1:
        raise NotDataError(f"an array of {found.dtype} for times")
    return found


def _make_durations(reader: DataReader, values: Item) -> Any:
    return pd.TimedeltaIndex(_times(reader, values, "m")).array


def _make_periods(reader: DataReader, values: Item, frequency: Any) -> Any:
    return pd.arrays.PeriodArray(reader.exact(values, np.ndarray), dtype=pd.PeriodDtype(_frequency(frequency)))


def _make_intervals(reader: DataReader, left: Item, right: Item, closed: Any) -> Any:
    ends = [reader.exact(end, pd.RangeIndex, *_INDEXES) for end in (left, right)]
    return pd.arrays.IntervalArray.from_arrays(*ends, closed=text(closed))


_COLUMNS: dict[type, ObjectKind] = {
    pd.Categorical: ObjectKind("pandas.categorical", _categorical, _make_categorical),
    pd.arrays.DatetimeArray: ObjectKind("pandas.moments", _moments, _make_moments),
    pd.arrays.TimedeltaArray: ObjectKind(
        "pandas.durations", lambda writer, found: [writer.item(found.asi8.view(f"m8[{found.unit}]"))], _make_durations
    ),
    pd.arrays.PeriodArray: ObjectKind(
        "pandas.periods", lambda writer, found: [writer.item(found.asi8), found.freqstr], _make_periods
    ),
    pd.arrays.IntervalArray: ObjectKind(
        "pandas.intervals",
        lambda writer, found: [writer.item(found.left), writer.item(found.right), found.closed],
        _make_intervals,
    ),
    **dict.fromkeys(_MASKED.values(), ObjectKind("pandas.masked", _masked, _make_masked)),
}
_TEXTS = ObjectKind("pandas.texts", _texts, _make_texts)


def _column(writer: DataWriter, array: Any) -> Item:
    return writer.item(array.to_numpy() if isinstance(array, pd.arrays.NumpyExtensionArray) else array)


def _made_column(reader: DataReader, item: Item) -> Any:
    found = reader.at(item)
    if type(found) is np.ndarray or type(found) in _COLUMNS or isinstance(found.dtype, pd.StringDtype):
        return found
    raise NotDataError(f"a {type(found).__name__} where a column belongs")


# -- frames, series and indexes --------------------------------------------------------------------------


def _attrs(writer: DataWriter, found: Any) -> list[Any]:
    return [writer.items(list(found.attrs)), writer.items(list(found.attrs.values()))]


def _made_attrs(reader: DataReader, attrs: Any) -> dict[Any, Any]:
    keys, values = map(reader.all, attrs)
    return dict(zip(keys, values, strict=True))


def _frame(writer: DataWriter, found: Any) -> list[Any]:
    dtypes = set(found.dtypes)
    is_block = len(dtypes) == 1 and isinstance(first := next(iter(dtypes)), np.dtype) and not first.hasobject
    columns = [found.to_numpy()] if is_block else [found.iloc[:, number].array for number in range(found.shape[1])]
    items = [_column(writer, column) for column in columns]
    return [writer.each(found.columns, found.index), is_block, items, _attrs(writer, found)]


def _make_frame(reader: DataReader, indexes: Any, is_block: Any, items: Any, attrs: Any) -> Any:
    names, rows = (reader.exact(index, pd.RangeIndex, pd.MultiIndex, *_INDEXES) for index in indexes)
    if flag(is_block):
        (item,) = items
        made = pd.DataFrame(reader.exact(item, np.ndarray), index=rows, copy=False)
    else:
        arrays = {number: _series_of(_made_column(reader, item), rows) for number, item in enumerate(items)}
        made = pd.DataFrame(arrays, index=rows, copy=False)
    made.columns = names
    made.attrs = _made_attrs(reader, attrs)
    return made


def _series_of(array: Any, index: Any) -> Any:
    return pd.Series(array, index=index, dtype=array.dtype, copy=False)


def _series(writer: DataWriter, found: Any) -> list[Any]:
    return [_column(writer, found.array), *writer.each(found.index, found.name), _attrs(writer, found)]


def _make_series(reader: DataReader, values: Item, index: Item, name: Item, attrs: Any) -> Any:
    made = _series_of(_made_column(reader, values), reader.exact(index, pd.RangeIndex, pd.MultiIndex, *_INDEXES))
    made.name = reader.at(name)
    made.attrs = _made_attrs(reader, attrs)
    return made


def _index(writer: DataWriter, found: Any) -> list[Any]:
    return [_column(writer, found.array), writer.item(found.name), getattr(found, "freqstr", None)]


def _make_index(reader: DataReader, values: Item, name: Item, frequency: Any) -> Any:
    array = _made_column(reader, values)
    made = pd.Index(array, dtype=array.dtype, name=reader.at(name), copy=False)
    if frequency is not None and type(made) in (pd.DatetimeIndex, pd.TimedeltaIndex):
        made.freq = _frequency(frequency)
    return made


def _range(writer: DataWriter, found: Any) -> list[Any]:
    return [found.start, found.stop, found.step, writer.item(found.name)]


def _make_range(reader: DataReader, start: Any, stop: Any, step: Any, name: Item) -> Any:
    return pd.RangeIndex(whole(start), whole(stop), whole(step), name=reader.at(name))


def _levels(writer: DataWriter, found: Any) -> list[Any]:
    codes = [np.asarray(row) for row in found.codes]
    return [writer.items(list(found.levels)), writer.items(codes), writer.items(list(found.names))]


def _make_levels(reader: DataReader, levels: Any, codes: Any, names: Any) -> Any:
    made_levels = [reader.exact(level, pd.RangeIndex, *_INDEXES) for level in levels]
    made_codes = [reader.exact(row, np.ndarray) for row in codes]
    return pd.MultiIndex(made_levels, made_codes, names=reader.all(names), verify_integrity=True)


# -- scalars ---------------------------------------------------------------------------------------------


def _timestamp(writer: DataWriter, found: Any) -> list[Any]:
    return [found.asm8.view("i8").item(), found.unit, _zone_item(writer, found.tz)]


def _make_timestamp(reader: DataReader, value: Any, unit: Any, tz: Item) -> Any:
    made = pd.Timestamp(_counted(np.datetime64, value, unit))
    found = zone(reader, tz)
    return made if found is None else made.tz_localize("UTC").tz_convert(found)


def _make_interval(reader: DataReader, left: Item, right: Item, closed: Any) -> Any:
    return pd.Interval(reader.at(left), reader.at(right), text(closed))


_INDEX = ObjectKind("pandas.index", _index, _make_index)
_TYPES: dict[type, ObjectKind] = {
    **_COLUMNS,
    **dict.fromkeys(_INDEXES, _INDEX),
    pd.RangeIndex: ObjectKind("pandas.range", _range, _make_range),
    pd.MultiIndex: ObjectKind("pandas.levels", _levels, _make_levels),
    pd.DataFrame: ObjectKind("pandas.frame", _frame, _make_frame),
    pd.Series: ObjectKind("pandas.series", _series, _make_series),
    type(pd.NaT): ObjectKind("pandas.nat", lambda _writer, _found: [], lambda _reader: pd.NaT),
    type(pd.NA): ObjectKind("pandas.na", lambda _writer, _found: [], lambda _reader: pd.NA),
    pd.Timestamp: ObjectKind("pandas.timestamp", _timestamp, _make_timestamp),
    pd.Timedelta: ObjectKind(
        "pandas.timedelta",
        lambda _writer, found: [found.asm8.view("i8").item(), found.unit],
        lambda _reader, value, unit: pd.Timedelta(_counted(np.timedelta64, value, unit)),
    ),
    pd.Period: ObjectKind(
        "pandas.period",
        lambda _writer, found: [found.ordinal, found.freqstr],
        lambda _reader, ordinal, frequency: pd.Period(ordinal=whole(ordinal), freq=_frequency(frequency)),
    ),
    pd.Interval: ObjectKind(
        "pandas.interval",
        lambda writer, found: [*writer.each(found.left, found.right), found.closed],
        _make_interval,
    ),
}
NAMED = {kind.name: kind for kind in (_TEXTS, *_TYPES.values())}


def kind_of(value: Any) -> ObjectKind | None:
    """Return the kind of an object of pandas."""
    if isinstance(value, pd.api.extensions.ExtensionArray) and isinstance(value.dtype, pd.StringDtype):
        return _TEXTS
    if type(value).__name__ == "ArrowExtensionArray":
        raise NotDataError('a column of Arrow; x.convert_dtypes(dtype_backend="numpy_nullable") has its data')
    return _TYPES.get(type(value))
