"""Runs scripts and modules as `python` would, and keeps the modules of different scripts apart."""

from __future__ import annotations

import runpy
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from jupyter_dist.rank.guard.own import os

INTERRUPTIBLE = True  # scripts run below these functions

_OURS = __name__.partition(".")[0]
_INSTALLED = tuple({sysconfig.get_path(kind) + os.sep for kind in ("stdlib", "platstdlib", "purelib", "platlib")})


def run(argv: Sequence[str], path: str | None, module: str | None) -> None:
    """Run a script, or a module as `python -m` does. It is `__main__`, and `sys.exit(0)` is a success.

    Whatever it imports from its own folder is imported again each time, and dropped when it has ended.
    """
    before, folder = list(sys.path), os.path.dirname(path) if path else os.getcwd()
    arguments, sys.argv = sys.argv, list(argv)
    sys.path.insert(0, folder)
    try:
        with fresh_modules(folder):
            _run(path, module)
    except SystemExit as stop:
        if stop.code not in (None, 0):
            raise
    finally:
        sys.argv, sys.path[:] = arguments, before


def _run(path: str | None, module: str | None) -> None:
    if path is not None:
        runpy.run_path(path, run_name="__main__")
    else:
        runpy.run_module(module or "", run_name="__main__", alter_sys=True)


@contextmanager
def fresh_modules(folder: str) -> Iterator[None]:
    """In this context, modules that the folder provides are imported again; afterwards sys.modules is as before."""
    hidden = _take_out(_provided_by(folder))
    try:
        yield
    finally:
        _take_out(_provided_by(folder))
        sys.modules.update(hidden)


def drop_modules_of_others(folder: str) -> None:
    """Forget modules that other folders provided under the names of this folder's modules (for `%run`)."""
    names = _provided_by(folder)
    _take_out({name for name in names if name in sys.modules and not _is_in(sys.modules[name], folder)})


def _provided_by(folder: str) -> set[str]:
    """Return the names of the modules and packages in a folder."""
    try:
        entries = os.listdir(folder or ".")
    except OSError:
        return set()
    stems = {entry.partition(".")[0] for entry in entries if "." not in entry or entry.endswith((".py", ".so"))}
    return {stem for stem in stems if stem.isidentifier() and stem != "__main__"}


def _take_out(names: set[str]) -> dict[str, ModuleType]:
    """Remove these modules and their submodules from sys.modules, except for installed ones; return them."""
    mine = {name for name in names if name in sys.modules and not _is_installed(name, sys.modules[name])}
    taken = {name: module for name, module in list(sys.modules.items()) if name.partition(".")[0] in mine}
    for name in taken:
        del sys.modules[name]
    return taken


def _is_installed(name: str, module: ModuleType) -> bool:
    """Whether a module is part of Python, of the environment, or of this package: all scripts share these."""
    place = _place_of(module)
    return name == _OURS or place is None or place.startswith(_INSTALLED)


def _is_in(module: ModuleType, folder: str) -> bool:
    place = _place_of(module)
    return place is not None and os.path.dirname(place) == os.path.abspath(folder)


def _place_of(module: ModuleType) -> str | None:
    """Return the path of a module's file, or of a package's folder; None if it has none."""
    paths = getattr(module, "__path__", None)
    found = next(iter(paths), None) if paths is not None else getattr(module, "__file__", None)
    return os.path.abspath(found) if isinstance(found, str) else None
