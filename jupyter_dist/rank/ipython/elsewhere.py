"""Magics of `%load_ext jupyter_dist` in a cell that runs on ranks: each is refused with a hint where it runs."""

from __future__ import annotations

from IPython.core.error import UsageError

from jupyter_dist.protocol.parts import declared

# Each magic with its equivalent on ranks. tests/rank/test_cells.py compares the names with the extension's magics.
_CELLS = "In JupyterLab, choose the ranks in the cell's rank picker."
_GROUPS = "In JupyterLab, the sidebar of groups does it, in a terminal 'jupyter dist'."
_SAMES = {
    "%sync": "On ranks, run dist.barrier().",
    "%%rank": _CELLS,
    "%%distributed": _CELLS,
    "%%dip": _CELLS,
    **dict.fromkeys(
        ("%dist_init", "%dist_status", "%dist_restart", "%dist_shutdown", "%dist_reset"),
        _GROUPS,
    ),
    **dict.fromkeys(("%dist_debug", "%makedip"), _GROUPS),
    **dict.fromkeys(("%dist_mode", "%dist_sync_ide", "%autodip", "%dipper", "%dipull", "%dipush"), ""),
    **dict.fromkeys(("%timeline_clear", "%timeline_debug", "%timeline_save"), ""),
    **declared("MAGICS"),
}
NAMES = frozenset(_SAMES)


def refuse(name: str) -> None:
    """Raise UsageError if a magic with this name runs in a kernel beside the ranks."""
    same = _SAMES.get(name)
    if same is not None:
        message = (
            f"{name} is for a kernel, and this cell runs on ranks. Run it in a cell of a Python kernel after "
            f"%load_ext jupyter_dist, or at the beginning of a cell of the kernel Ranks. {same}"
        )
        raise UsageError(message.rstrip())
