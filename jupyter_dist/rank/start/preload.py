"""Imports the modules and creates the shell that every rank needs, before ranks are forked."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys

from . import driver

# None of these computes, starts a thread or uses a device when it is imported.
_NEEDED = (
    "asyncio",
    "concurrent.futures.thread",
    "json",
    "multiprocessing",
    "multiprocessing.connection",
    "torch",
    "torch.distributed",
    "torch.nn.parallel",
    "torch.utils.data",
    "IPython",
    "jupyter_dist.rank.main",
)
# IPython modules that a shell and its first cells import; where another version has other modules, it imports them
# later.
_EARLY = (
    "IPython.core.application",
    "IPython.core.completer",
    "IPython.core.completerlib",
    "IPython.core.crashhandler",
    "IPython.core.debugger",
    "IPython.core.magics",
    "IPython.core.magics.basic",
    "IPython.core.magics.execution",
    "IPython.core.magics.namespace",
    "IPython.core.magics.osm",
    "IPython.core.magics.script",
    "IPython.core.oinspect",
    "IPython.core.pylabtools",
    "IPython.core.ultratb",
    "pdb",
    "pexpect",
    "stack_data",
)
# Imported here rather than in the first cell that needs them; they may be missing. A comma-separated list in
# JUPYTER_DIST_OPTIONAL_PRELOAD replaces them: torch._dynamo takes over a second, and many cells never need it.
OPTIONAL = ("numpy", "torch._dynamo", "matplotlib")
# The slow ones of these, which take as long as torch itself: a group that a caller waits for does not wait for them.
LATE = ("torch._dynamo", "matplotlib")


INLINE_BACKEND = "module://matplotlib_inline.backend_inline"


def preload(extra_modules: list[str], *, also_late: bool = True) -> None:
    """Import torch, IPython and `extra_modules`, and create the shell.

    Without `also_late`, `preload_late` is left to do.

    Raises:
        ImportError: torch, IPython or an extra module cannot be imported.
    """
    from jupyter_dist.rank.frameworks.hook import ImportHook

    ImportHook.in_place()
    for name in (*_NEEDED, *extra_modules):
        importlib.import_module(name)
        driver.note(name)
    for name in _EARLY:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    _import_found(_optional() if also_late else [name for name in _optional() if name not in LATE])
    from jupyter_dist.rank import part
    from jupyter_dist.rank.cells.shell import RankShell

    part.find_parts()
    RankShell.prepare()


def preload_late() -> None:
    """Import the modules that `preload` left out. Raises ImportError."""
    _import_found([name for name in _optional() if name in LATE])


def _import_found(names: list[str]) -> None:
    for name in names:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
            driver.note(name)
    if "matplotlib" in sys.modules:
        _find_backends()


def _find_backends() -> None:
    """Load matplotlib's backends from all installed packages once: in each rank this would be most of its start."""
    validate = getattr(importlib.import_module("matplotlib.rcsetup"), "validate_backend", None)
    if validate is not None:
        with contextlib.suppress(ValueError):  # matplotlib_inline is missing; ranks report it when they use it
            validate(INLINE_BACKEND)


def _optional() -> list[str]:
    chosen = os.environ.get("JUPYTER_DIST_OPTIONAL_PRELOAD")
    return list(OPTIONAL) if chosen is None else [name.strip() for name in chosen.split(",") if name.strip()]
