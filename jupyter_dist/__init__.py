"""Program many GPUs from a notebook: a long-lived group of torch.distributed ranks, managed by a Jupyter server.

Keep this module light: rank processes import it, too, in the user's environment, where jupyter_server and tornado
may not be installed.
"""

from __future__ import annotations

from typing import Any

from .version import __version__

__all__ = ["__version__"]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "jupyter-dist"}]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    from jupyter_dist.server.extension import DistApp

    return [{"module": "jupyter_dist", "app": DistApp}]


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext jupyter_dist`."""
    if hasattr(shell, "rank_names"):
        print("This is a rank: the magics of jupyter_dist are for a kernel beside the ranks.")  # noqa: T201
        return
    from .magics.extension import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Called by `%unload_ext jupyter_dist`."""
    from .magics.extension import unload

    unload(shell)
