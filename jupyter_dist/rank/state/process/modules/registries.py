"""Entries of cells in registries of libraries: pickling, magics, accessors of pandas and the like."""

from __future__ import annotations

import abc
import collections.abc
import copyreg
import importlib
import numbers
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from IPython.core.alias import Alias

from .own import is_users, is_users_module

_before: dict[str, Any] = {}


def _of_shell(*names: str) -> Callable[[Any], Any]:
    def read(shell: Any) -> Any:
        for name in names:
            shell = shell[name] if isinstance(shell, dict) else getattr(shell, name, {})
        return shell

    return read


def _of_module(module: str, name: str) -> Callable[[Any], Any]:
    return lambda _: getattr(sys.modules.get(module), name, {})


# Dictionaries and lists; what is read of a module that is not loaded is empty.
REGISTRIES: dict[str, Callable[[Any], Any]] = {
    "copyreg.dispatch_table": lambda _: copyreg.dispatch_table,
    "line magics": _of_shell("magics_manager", "magics", "line"),
    "cell magics": _of_shell("magics_manager", "magics", "cell"),
    "transformers of cells": _of_shell("input_transformers_post"),
    "cleanups of cells": _of_shell("input_transformers_cleanup"),
    "transformers of syntax trees": _of_shell("ast_transformers"),
    "HTML of classes": _of_shell("display_formatter", "formatters", "text/html", "type_printers"),
    "text of classes": _of_shell("display_formatter", "formatters", "text/plain", "type_printers"),
    "sys.meta_path": lambda _: sys.meta_path,
    "sys.path_hooks": lambda _: sys.path_hooks,
    "torch.distributions.kl": _of_module("torch.distributions.kl", "_KL_REGISTRY"),
    "matplotlib.units.registry": _of_module("matplotlib.units", "registry"),
    "matplotlib.colormaps": lambda _: getattr(getattr(sys.modules.get("matplotlib"), "colormaps", None), "_cmaps", {}),
}
_dump: Any = vars(importlib.import_module("_abc"))["_get_dump"]  # the virtual subclasses of a class, first
_ABSTRACT = [getattr(module, name) for module in (collections.abc, numbers) for name in module.__all__]


def remember(shell: Any) -> None:
    """Remember the entries of before the first cell."""
    _before.clear()
    _before.update({name: _copy(read(shell)) for name, read in REGISTRIES.items()})


def take(shell: Any) -> dict[str, Any]:
    """Return the entries of cells, by the names of the registries."""
    found: dict[str, Any] = {name: _of_cells(name, read(shell)) for name, read in REGISTRIES.items()}
    found["accessors of pandas"] = dict(_accessors())
    found["torch.serialization"] = [one for one in _safe_globals() if _is_users(one)]
    found.update({called: _Lost() for called in _LOST if _calls(shell, called)})
    found["set_custom_exc()"] = _Lost() if getattr(shell, "custom_exceptions", ()) else None
    found["signals"] = {one: called for one, called in _handlers().items() if callable(called) and _is_users(called)}
    found["virtual subclasses"] = dict(_subclasses())
    return {name: entries for name, entries in found.items() if entries}


def put_back(shell: Any, saved: Mapping[str, Any]) -> list[str]:
    """Add the saved entries, and remove others of cells."""
    for name, read in REGISTRIES.items():
        registry, entries = read(shell), saved.get(name, {})
        for key in reversed(list(_of_cells(name, registry))):
            del registry[key]
        for key, one in entries.items():
            if isinstance(registry, dict):
                registry[key] = one
            else:
                registry.insert(key, one)
    for path, accessor in saved.get("accessors of pandas", {}).items():
        _register_accessor(path[0], path[1], accessor)
    if safe := saved.get("torch.serialization"):
        torch.serialization.add_safe_globals(safe)
    for number, handler in saved.get("signals", {}).items():
        signal.signal(number, handler)
    for kind, below in saved.get("virtual subclasses", {}).items():
        for one in below:
            kind.register(one)
    return []


class _Lost:
    """Stands for what a library has no function to read, so that it is named."""

    def __reduce__(self) -> Any:
        """Refuse."""
        message = "it holds what its library cannot list: run its cell again after a restore"
        raise pickle.PicklingError(message)


_LOST = ("codecs.register()", "mimetypes.add_type()")


def _calls(shell: Any, called: str) -> bool:
    return any(called[:-1] in code for code in shell.user_ns.get("_ih") or () if type(code) is str)


def _safe_globals() -> list[Any]:
    read = getattr(torch.serialization, "get_safe_globals", None)  # since torch 2.4
    return [] if read is None else list(read())


def _handlers() -> dict[int, Any]:
    return {one: signal.getsignal(one) for one in range(1, signal.NSIG)}


def _copy(registry: Any) -> Any:
    return dict(registry) if isinstance(registry, dict) else list(registry)


def _of_cells(name: str, registry: Any) -> dict[Any, Any]:
    """Return the entries of cells by their keys, in a list by their positions."""
    before = _before.get(name, {})
    if not isinstance(registry, dict):
        ids = set(map(id, before))
        return {at: one for at, one in enumerate(registry) if id(one) not in ids and _is_users(one)}
    new = {key: one for key, one in list(registry.items()) if key not in before or before[key] is not one}
    if name == "matplotlib.colormaps":
        known = getattr(sys.modules["matplotlib"].colormaps, "_builtin_cmaps", ()) if new else ()
        return {key: one for key, one in new.items() if key not in known}
    return {key: one for key, one in new.items() if _is_users(key) or _is_users(one) or isinstance(one, Alias)}


def _is_users(one: Any) -> bool:
    """Whether a function, a class or an object is of cells, or of the user's own modules."""
    if type(one) is tuple:
        return any(map(_is_users, one))
    one = getattr(one, "__func__", one)
    if isinstance(one, type):
        return is_users(one.__module__)
    variables = getattr(one, "__globals__", None)
    if type(variables) is not dict:
        return is_users(type(one).__module__)
    module = sys.modules.get(variables.get("__name__", ""))
    return variables.get("__name__") == "__main__" or (module is not None and is_users_module(module))


def _accessors() -> Iterator[tuple[tuple[str, str], Any]]:
    pandas = sys.modules.get("pandas")
    for kind in ("DataFrame", "Series", "Index"):
        attributes = vars(getattr(pandas, kind, object))
        for name, one in [(name, attributes.get(name)) for name in attributes.get("_accessors", ())]:
            accessor = getattr(one, "_accessor", None)
            if isinstance(accessor, type) and is_users(accessor.__module__):
                yield (kind, name), accessor


def _register_accessor(kind: str, name: str, accessor: Any) -> None:
    extensions = importlib.import_module("pandas.api.extensions")
    register = getattr(extensions, f"register_{kind.lower()}_accessor")
    if (kind, name) not in dict(_accessors()):  # else pandas would warn
        register(name)(accessor)


def _subclasses() -> Iterator[tuple[type, list[type]]]:
    for kind in _ABSTRACT:
        below = [one() for one in _dump(kind)[0]] if issubclass(type(kind), abc.ABCMeta) else []
        if own := [one for one in below if one is not None and is_users(one.__module__)]:
            yield kind, own
