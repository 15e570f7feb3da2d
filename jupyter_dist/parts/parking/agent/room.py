"""Whether there is room for the memory of a group: in the memory of its machines, or on a disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
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
            where = say("this machine") if node is None else say("node %1", node)
            raise JupyterDistError(
                "group_not_ready",
                say(
                    "The ranks hold %1 GiB on devices, and %2 has %3 GiB of memory available.",
                    f"{num_bytes / GIB:.1f}",
                    where,
                    f"{available / GIB:.1f}",
                ),
                say("Park it into files (to='file'), or delete variables."),
            )


def check_folder(folder: Path, num_bytes: int) -> None:
    """Raise JupyterDistError `group_not_ready` if files of this size cannot be kept in a folder."""
    hint = say("Name a folder on a disk with 'folder'.")
    try:
        is_memory, free = disk.is_memory(folder), disk.free_bytes(folder)
    except OSError as err:
        raise JupyterDistError("group_not_ready", say("%1: %2.", folder, err.strerror), hint) from err
    if is_memory:
        raise JupyterDistError("group_not_ready", say("Files in %1 would be in memory.", folder), hint)
    if num_bytes > free:
        message = say(
            "The ranks hold %1 GiB, and %2 has %3 GiB free.", f"{num_bytes / GIB:.1f}", folder, f"{free / GIB:.1f}"
        )
        raise JupyterDistError("group_not_ready", message, hint)
