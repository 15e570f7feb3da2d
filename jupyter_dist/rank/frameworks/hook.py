"""Applies fixes after their module was imported, by the zygote's preload or by a cell; unused fixes cost nothing."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from importlib import metadata
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from jupyter_dist.protocol.parts import PartModules, find_modules

from . import torch, widgets
from .fix import Fix, RankContext

INTERRUPTIBLE = True  # cells run and wait below these functions

# Fixes of other packages in the ranks' Python: each has the name of its module, and is not loaded before the module.
ENTRY_POINTS = "jupyter_dist.framework_fixes"


class ImportHook(MetaPathFinder):
    """First in sys.meta_path: lets the other finders find a module, and acts after it was executed."""

    def __init__(self) -> None:
        self.context = RankContext()
        found = find_modules("fixes")
        self._fixes = fixes_of(found)
        for sentence in found.problems:
            self.context.log(f"jupyter_dist: {sentence}\n")
        self._points = metadata.entry_points(group=ENTRY_POINTS)

    @classmethod
    def in_place(cls) -> ImportHook:
        """Return this process's hook; install it if needed."""
        for finder in sys.meta_path:
            if isinstance(finder, cls):
                return finder
        hook = cls()
        sys.meta_path.insert(0, hook)
        for name in [name for name in {*hook._fixes, *hook._points.names} if name in sys.modules]:
            hook._imported(sys.modules[name])
        return hook

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the other finders, with a loader that applies the fixes afterwards."""
        if fullname not in self._fixes and fullname not in self._points.names:
            return None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(fullname, path, target)
                if spec is not None:
                    self._watch(spec)
                    return spec
        return None

    def _watch(self, spec: ModuleSpec) -> None:
        loader = spec.loader
        if loader is None or not hasattr(loader, "exec_module"):
            return
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if module.__name__ == spec.name:  # a loader of many modules (a zip file's) may be shared
                self._imported(module)

        # On the instance, because its class is used for every import and tools check its type.
        with contextlib.suppress(AttributeError):
            loader.exec_module = exec_module  # type: ignore[method-assign]

    def _imported(self, module: ModuleType) -> None:
        for fix in [*self._fixes.get(module.__name__, ()), *self._fixes_of_others(module.__name__)]:
            try:
                fix.apply(self.context, module)
            except Exception as err:  # an import of the user must never fail because of a fix
                self._log(fix, f"skipped, the module is not as expected ({type(err).__name__}: {err}): {fix.does}")
            else:
                self._log(fix, fix.does)

    def _fixes_of_others(self, name: str) -> list[Fix]:
        found: list[Fix] = []
        for point in self._points.select(name=name):
            try:
                found += point.load()
            except Exception as err:  # an import of the user must never fail because of a fix
                why = f"{type(err).__name__}: {err}"
                self.context.log(f"jupyter_dist: the fixes {point.value} to {name} were left out: {why}\n")
        return found

    def _log(self, fix: Fix, line: str) -> None:
        if fix.does:
            self.context.log(f"jupyter_dist: {fix.package} {_version(fix)}: {line}\n")


def fixes_of(parts: PartModules) -> dict[str, list[Fix]]:
    """Return the fixes of this package and of the modules `fixes` of parts, by the module that is imported."""
    found: dict[str, list[Fix]] = {}
    for fixes in (torch.FIXES, widgets.FIXES, *(module.FIXES for module in parts.modules.values())):
        for name, more in fixes.items():
            found.setdefault(name, []).extend(more)
    return found


def _version(fix: Fix) -> str:
    try:
        version = metadata.version(fix.package)
    except metadata.PackageNotFoundError:
        return "of unknown version"
    return version if version.startswith(fix.seen_with) else f"{version} (seen with {fix.seen_with})"
