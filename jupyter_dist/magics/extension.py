"""Loads and unloads the magics, without connecting, starting or stopping anything."""

from __future__ import annotations

from typing import Any

from jupyter_dist.protocol.parts import find_parts
from jupyter_dist.system import points

from .automode import AutoMode
from .base import RankMagics
from .completion import RankNames
from .distmagics import DistMagics
from .session import IPythonHost, Session

# Vocabularies beside `%dist_...` and `%%rank`: of parts, and of other packages.
ENTRY_POINTS = "jupyter_dist.magics"


def vocabularies() -> dict[str, type[RankMagics]]:
    """Return the classes of magics that installed packages add, by the name of their entry points."""
    return points.load(ENTRY_POINTS, RankMagics)


def load(shell: Any) -> None:
    """Called by `%load_ext jupyter_dist`."""
    session = Session(IPythonHost(shell))
    auto = AutoMode()
    names = RankNames(session, auto)
    added = [*find_parts("magics", RankMagics).classes.values(), *vocabularies().values()]
    shell.register_magics(DistMagics(shell, session, auto, names), *(magics(shell, session, auto) for magics in added))
    shell.Completer.custom_matchers.append(names.matcher)
    shell.input_transformers_cleanup.append(auto)
    if warning := points.missing(ENTRY_POINTS, "Magics of other tools (%makedip, %%dip, %timeline_save)"):
        print(warning)


def unload(shell: Any) -> None:
    """Called by `%unload_ext jupyter_dist` and `%reload_ext`: the group is kept, cells run in the kernel again."""
    transforms = shell.input_transformers_cleanup
    if any(isinstance(transform, AutoMode) and transform.prefix is not None for transform in transforms):
        print("Cells run in the kernel again.")
    transforms[:] = [transform for transform in transforms if not isinstance(transform, AutoMode)]
    matchers = shell.Completer.custom_matchers
    matchers[:] = [each for each in matchers if not isinstance(getattr(each, "__self__", None), RankNames)]
    registry = shell.magics_manager.registry
    unloaded = [registry.pop(name) for name, magics in [*registry.items()] if isinstance(magics, RankMagics)]
    if unloaded:
        unloaded[0].session.close()
