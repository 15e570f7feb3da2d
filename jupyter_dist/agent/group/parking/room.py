"""Whether there is room for the memory of a group: in the memory of its machines, or on a disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.system.files import disk

SPARE_BYTES = 1 << 30  # of a machine, which others use meanwhile
GIB = 1 << 30


class Need(NamedTuple):
    """The memory that a rank would move, and what its machine has available."""

    node: int | None
    num_bytes: int
    available_bytes: int | None


def check_hosts(needs: Iterable[Need]) -> None:
    """Raise JupyterDistError `group_not_ready` if a machine has too little memory for the bytes of its devices."""
    by_node: dict[int | None, list[Need]] = {}
    for need in needs:
        by_node.setdefault(need.node, []).append(need)
    for node, of_node in by_node.items():
        num_bytes = sum(need.num_bytes for need in of_node)
        available = min((need.available_bytes for need in of_node if need.available_bytes is not None), default=None)
        if available is not None and num_bytes + SPARE_BYTES > available:
            where = "this machine" if node is None else f"node {node}"
            raise JupyterDistError(
                "group_not_ready",
                f"The ranks hold {num_bytes / GIB:.1f} GiB on devices, and {where} has {available / GIB:.1f} GiB of "
                "memory available.",
                "Park it into files (to='file'), or delete variables.",
            )


def check_folder(folder: Path, num_bytes: int) -> None:
    """Raise JupyterDistError `group_not_ready` if files of this size cannot be kept in a folder."""
    hint = "Name a folder on a disk with 'folder'."
    try:
        is_memory, free = disk.is_memory(folder), disk.free_bytes(folder)
    except OSError as err:
        raise JupyterDistError("group_not_ready", f"{folder}: {err.strerror}.", hint) from err
    if is_memory:
        raise JupyterDistError("group_not_ready", f"Files in {folder} would be in memory.", hint)
    if num_bytes > free:
        message = f"The ranks hold {num_bytes / GIB:.1f} GiB, and {folder} has {free / GIB:.1f} GiB free."
        raise JupyterDistError("group_not_ready", message, hint)
