"""The apps in this rank's Python, and the one in use. Cells of `%makedip -a` and `%%dip -a` call it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from IPython import get_ipython

ENTRY_POINTS = "jupyter_dist.apps"
# Ours, found even if this package is not installed; the other names are those in old notebooks.
OWN = dict.fromkeys(("fastai", "fastai_v1", "fastai_v2"), "jupyter_dist.apps.fastai")
PROTOCOL = frozenset({"initializer", "finalizer", "set_verbose", "imports"})


class AppError(Exception):
    """An unknown name; the message is one sentence."""


class Apps:
    """The app in use: at most one, using another ends it."""

    def __init__(self) -> None:
        self._name = ""
        self._app: Any = None
        self._verbose = False
        self._waiting: Callable[[], None] | None = None

    @property
    def in_use(self) -> tuple[str, bool, bool] | None:
        """Return the app's name, whether it is verbose, and whether it waits for an import."""
        is_set_up = self._app is not None
        return (self._name, self._verbose, not is_set_up) if is_set_up or self._waiting else None

    def use(self, name: str, verbose: bool = False) -> None:
        """Set up an app: run its `imports` in the namespace of cells, then its `initializer()`.

        Raises:
            AppError: if there is no app with that name, listing the known ones.
        """
        app = load(name)
        self.leave()
        if hasattr(app, "set_verbose"):
            app.set_verbose(verbose)
        for statement in getattr(app, "imports", ()):
            get_ipython().ex(statement)
        if hasattr(app, "initializer"):
            app.initializer()
        self._name, self._app, self._verbose = name, app, verbose

    def use_when_imported(self, name: str, verbose: bool = False) -> None:
        """Set up the app after the first cell that imports the framework of that name."""
        self.leave()
        events = get_ipython().events

        def look() -> None:
            if name in sys.modules:
                self.use(name, verbose)

        self._name, self._verbose, self._waiting = name, verbose, look
        events.register("post_execute", look)

    def set_verbose(self, verbose: bool) -> None:
        """Pass the flag to the app in use."""
        self._verbose = verbose
        if hasattr(self._app, "set_verbose"):
            self._app.set_verbose(verbose)

    def leave(self) -> None:
        """End the app in use, if there is one."""
        if self._waiting is not None:
            get_ipython().events.unregister("post_execute", self._waiting)
            self._waiting = None
        app, self._app = self._app, None
        if app is not None and hasattr(app, "finalizer"):
            app.finalizer()

    def call(self, command: str) -> None:
        """Call a function of the app.

        Raises:
            AppError: if no app is in use, or it has no such function.
        """
        if self._app is None:
            raise AppError(f"No app is in use, so there is no '{command}'. Choose one: %makedip -a NAME.")
        commands = _commands(self._app)
        if command not in commands:
            has = f"It has: {', '.join(sorted(commands))}." if commands else "It has none."
            raise AppError(f"The app '{self._name}' has no function '{command}'. {has}")
        commands[command]()


def known() -> dict[str, str | EntryPoint]:
    """Return where the apps are, by name."""
    return {**OWN, **{point.name: point for point in entry_points(group=ENTRY_POINTS)}}


def load(name: str) -> Any:
    """Return the app with that name: a module or an object. Raises AppError."""
    found = known()
    if name not in found:
        raise AppError(f"There is no app '{name}' in the ranks' Python. It has: {', '.join(sorted(found))}.")
    place = found[name]
    return importlib.import_module(place) if isinstance(place, str) else place.load()


def _commands(app: Any) -> dict[str, Callable[[], Any]]:
    """Return the functions of an app; for a module, its own functions only."""
    names = [name for name in dir(app) if not name.startswith("_") and name not in PROTOCOL]
    functions = {name: getattr(app, name) for name in names if callable(getattr(app, name))}
    own = getattr(app, "__name__", None)
    return {name: f for name, f in functions.items() if own is None or getattr(f, "__module__", None) == own}


# Global, so that cells find what an earlier cell chose; each rank process has its own.
apps = Apps()
