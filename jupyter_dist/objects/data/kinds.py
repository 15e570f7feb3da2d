"""Writes an object as data and reads it. Packages are imported only if one of the objects needs them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

from . import allowed, plain
from .graph import MARK, DataReader, DataWriter, NotDataError, ObjectKind, text

# The module for the types of a package, which imports it.
_MODULES = {"numpy": "arrays", "torch": "tensors", "pandas": "frames"}
_ADVICE = {"polars": "x.to_dict(as_series=False)", "pyarrow": "x.to_pandas()", "torch": "tuple(x), x.item() or x.data"}


def write(value: Any, *, stages: bool = False) -> list[memoryview]:
    """Return the pieces of an object: a description, then large buffers. Raises NotDataError, naming the type."""
    return DataWriter(kind_of, stages).pieces(value)


def read(pieces: Sequence[memoryview]) -> Any:
    """Return the object with these pieces, which another machine has sent.

    Raises:
        NotDataError: The pieces are not of this format; NotAllowedError for a class that the user has not allowed.
        Exception: Some value in them is wrong, or needs a package that is not installed here.
    """
    if not pieces or not is_data(pieces[0]):
        raise NotDataError("no data")
    return DataReader(kind_named, pieces).value()


def is_data(description: memoryview) -> bool:
    """Whether a file's first piece is of this format, and no pickle."""
    return bytes(description[: len(MARK)]) == MARK


def kind_of(value: Any) -> ObjectKind:
    """Return the kind of an object. Raises NotDataError."""
    cls = type(value)
    if cls in plain.KINDS:
        return plain.KINDS[cls]
    found = plain.kind_of(cls)
    package = cls.__module__.partition(".")[0]
    if found is None and package in _MODULES and package in sys.modules:
        found = importlib.import_module(f".{_MODULES[package]}", __package__).kind_of(value)
    found = found or allowed.kind_of(cls)
    if found is None:
        advice = f"; {_ADVICE[package]} may be" if package in _ADVICE else ""
        raise NotDataError(f"a {allowed.name_of(cls)}, which is no data{advice}")
    return found


def kind_named(name: str) -> ObjectKind:
    """Return the kind with a name. Raises NotDataError; ImportError, if its package is not installed."""
    found: ObjectKind | None = plain.NAMED.get(text(name)) or allowed.NAMED.get(name)
    package = name.partition(".")[0]
    if found is None and package in _MODULES:
        found = importlib.import_module(f".{_MODULES[package]}", __package__).NAMED.get(name)
    if found is None:
        raise NotDataError(f"objects of an unknown kind, {name!r:.40}")
    return found
