"""Memory of this machine and of this process."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator
from pathlib import Path

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say

# Below this, nothing stays in memory only to make a later start faster.
MIN_FREE_BYTES = 2 << 30
GIB = 1 << 30
MAX_SPARE_BYTES, SPARE_SHARE = GIB, 0.1  # of a machine, which others use meanwhile


CGROUPS = Path("/sys/fs/cgroup")


def keep_present_objects() -> None:
    """Have garbage collection pass over the objects of this process, which live as long as it does.

    Scanning what was imported takes 30 ms and more, during which the process does nothing else, and in a forked process
    copies the memory. Nothing is scanned here. Call `gc.collect` before, unless there is no garbage yet.
    """
    gc.freeze()
    gc.collect()  # of nothing: it sets when all is scanned next, at a quarter of the objects that are not frozen


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Switch off automatic garbage collection.

    Imports create objects that stay, and scanning these again and again takes a fifth of the import of torch.
    Thresholds that an imported package has set are kept.
    """
    before = gc.get_threshold()
    gc.set_threshold(0)
    try:
        yield
    finally:
        if gc.get_threshold()[0] == 0:
            gc.set_threshold(*before)


def is_short() -> bool:
    """Whether less than MIN_FREE_BYTES are available."""
    available = _available_in_machine()
    return os.name != "posix" if available is None else available <= MIN_FREE_BYTES  # unknown: assume that it is enough


def available_bytes() -> int | None:
    """Return the memory that this process can still get: of the machine, and of its control group; None if unknown."""
    found = [size for size in (_available_in_machine(), _available_in_group()) if size is not None]
    return min(found, default=None)


def shortage(needed_bytes: int, available_bytes: int | None) -> JupyterDistError | None:
    """Return why there is too little memory to read values, before any is read; None if it has enough.

    Args:
        needed_bytes: of the values: the present ones stay until all are read.
        available_bytes: of the machine; None: unknown.
    """
    spare = min(MAX_SPARE_BYTES, int(needed_bytes * SPARE_SHARE))
    if available_bytes is None or needed_bytes + spare <= available_bytes:
        return None
    message = say(
        "The variables of the save take %1 GiB of memory, and the machine has %2 GiB available.",
        f"{needed_bytes / GIB:.1f}",
        f"{available_bytes / GIB:.1f}",
    )
    hint = say(
        "The present variables stay until all are read: delete large ones first, or begin a new group with the save."
    )
    return JupyterDistError("cannot_restore", message, hint)


def _available_in_machine() -> int | None:
    try:
        fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def _available_in_group() -> int | None:
    """Return the memory that the limits of control groups leave (version 2 alone); None if there is no limit."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    path = next((line[3:].lstrip("/") for line in lines if line.startswith("0::")), None)
    if path is None:
        return None
    folder = CGROUPS / path
    left = [_left_in(one) for one in (folder, *folder.parents) if one.is_relative_to(CGROUPS)]
    return min((size for size in left if size is not None), default=None)


def _left_in(folder: Path) -> int | None:
    try:
        limit, used = (folder / "memory.max").read_text().strip(), int((folder / "memory.current").read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return None if limit == "max" else max(0, int(limit) - used + int(stat.get("inactive_file", 0)))
    except (OSError, ValueError):
        return None


def own_bytes() -> int:
    """Return the memory of this process that no other process shares; 0 if the kernel does not report it."""
    return _mapped_bytes("self", "Private_")


def proportional_bytes(pid: int) -> int:
    """Return the memory of a process, where memory that n processes share counts as an n-th; 0 if it has ended."""
    return _mapped_bytes(str(pid), "Pss:")


def _mapped_bytes(process: str, prefix: str) -> int:
    try:
        lines = Path("/proc", process, "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(prefix))
