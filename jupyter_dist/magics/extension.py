"""Loads and unloads the magics, without connecting, starting or stopping anything."""

from __future__ import annotations

from typing import Any

from jupyter_dist.magics.distmagics import DistMagics
from jupyter_dist.magics.vocabularies.dipmagics import DipMagics
from jupyter_dist.magics.vocabularies.timeline import TimelineMagics

from .automode import AutoMode
from .completion import RankNames
from .session import Session

OURS = (DistMagics, DipMagics, TimelineMagics)


def load(shell: Any) -> None:
    """Called by `%load_ext jupyter_dist`."""
    session = Session(shell)
    auto = AutoMode()
    names = RankNames(session, auto)
    shell.register_magics(
        DistMagics(shell, session, auto, names),
        DipMagics(shell, session, auto),
        TimelineMagics(shell, session, auto),
    )
    shell.Completer.custom_matchers.append(names.matcher)
    shell.input_transformers_cleanup.append(auto)


def unload(shell: Any) -> None:
    """Called by `%unload_ext jupyter_dist` and `%reload_ext`: the group is kept, cells run in the kernel again."""
    remaining = [transform for transform in shell.input_transformers_cleanup if not isinstance(transform, AutoMode)]
    shell.input_transformers_cleanup[:] = remaining
    matchers = shell.Completer.custom_matchers
    matchers[:] = [each for each in matchers if not isinstance(getattr(each, "__self__", None), RankNames)]
    unloaded = [shell.magics_manager.registry.pop(magics.__name__, None) for magics in OURS]
    if unloaded[0] is not None:
        unloaded[0].session.close()
