"""Loading and unloading. Nothing is connected, started or stopped by it."""

from __future__ import annotations

from typing import Any

from .automode import AutoMode
from .dipmagics import DipMagics
from .distmagics import DistMagics
from .session import Session


def load(shell: Any) -> None:
    """Called by `%load_ext jupyter_dist`."""
    session = Session(shell)
    auto = AutoMode()
    shell.register_magics(DistMagics(shell, session, auto))
    shell.register_magics(DipMagics(shell, session, auto))
    shell.input_transformers_cleanup.append(auto)


def unload(shell: Any) -> None:
    """Called by `%unload_ext jupyter_dist` and `%reload_ext`: the group stays, cells are local again."""
    remaining = [transform for transform in shell.input_transformers_cleanup if not isinstance(transform, AutoMode)]
    shell.input_transformers_cleanup[:] = remaining
    magics = shell.magics_manager.registry.pop("DistMagics", None)
    shell.magics_manager.registry.pop("DipMagics", None)
    if magics is not None:
        magics.session.close()
