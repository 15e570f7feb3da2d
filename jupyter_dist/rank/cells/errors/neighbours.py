"""Other processes that hold memory on an exhausted device: torch's message contains their pids, as NVML reports them.

In a container they may be the machine's pids, and mean other processes or none here: they are used only if torch has
found this process among them.
"""

from __future__ import annotations

import os
import re

from jupyter_dist.system import processes

from .sizes import bytes_of, size_text

MAX_NAMED = 8

_OF_OTHERS = re.compile(r"\bProcess (\d+) has ([\d.]+) ([KMGTP]iB|bytes) memory in use\.")
_OF_THIS = "this process has "


def line(message: str) -> str | None:
    """Return a line about the other processes on the device; None if torch's message has none.

    Args:
        message: of torch.OutOfMemoryError.
    """
    found = [(int(pid), bytes_of(amount, unit)) for pid, amount, unit in _OF_OTHERS.findall(message)]
    if not found or _OF_THIS not in message:
        return None
    own: list[tuple[str, int]] = []
    hidden: list[tuple[str, int]] = []
    for pid, size in sorted(found, key=lambda one: -one[1]):
        name = _name_of_own(pid)
        (own if name else hidden).append((f"{name} (pid {pid})", size))
    parts = [f"{name} {size_text(size)}" for name, size in own[:MAX_NAMED]]
    if rest := own[MAX_NAMED:]:
        parts.append(f"{len(rest)} more of this user {size_text(sum(size for _, size in rest))}")
    if hidden:
        parts.append(f"{len(hidden)} of other users, or gone by now, {size_text(sum(size for _, size in hidden))}")
    return f"Other processes hold memory on this device, too: {'; '.join(parts)}"


def _name_of_own(pid: int) -> str:
    """Return the name of a process of this user; empty for processes of other users, and if the process has ended."""
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.getuid():
            return ""
    except OSError:
        return ""
    return "".join(filter(str.isprintable, processes.name_of(pid)))
