"""Where node agents reach the head of their group: at its addresses, or at the socket of a tunnel."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_dist.protocol.errors import bad_request

if TYPE_CHECKING:
    from .joinfile import JoinFile

UNIX = "unix:"  # begins an endpoint that is the socket of a tunnel


def socket_path(group_id: str, node: int) -> Path:
    """Return the socket of a node's tunnel. Its folder belongs to this user alone (`check_owner`)."""
    return Path("/tmp", f"jupyter-dist-{os.getuid()}-{group_id}", f"head-{node}.sock")  # noqa: S108 - in the job's own


def endpoints_of(join: JoinFile, node: int | None) -> list[str]:
    """Return where a node's agent reaches its head.

    Raises:
        JupyterDistError: `bad_request`, if that is a tunnel, and the number of the node is not known.
    """
    if not join.is_tunnelled:
        return join.endpoints
    if node is None:
        message = "The head of this group reaches each node through a tunnel, by the number of the node."
        raise bad_request(message, "Give the number: --node-rank, or JUPYTER_DIST_NODE_RANK.")
    return [f"{UNIX}{socket_path(join.group_id, node)}"]


def check_owner(path: Path) -> None:
    """Raise OSError if another user has made the folder of this socket."""
    found = os.lstat(path.parent)
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise OSError(f"{path.parent} belongs to another user")


def remove(path: Path) -> None:
    """Remove a socket, and its folder if no other node of the group has one there. Idempotent."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        path.parent.rmdir()
