"""What a device reader is: one class for each kind of device, found by the entry point group of this module."""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

GROUP = "jupyter_dist.device_readers"
COMMAND_SECONDS = 5.0

_FIELDS = (
    "name",
    "uuid",
    "memory_used_bytes",
    "memory_total_bytes",
    "utilization_percent",
    "temperature_celsius",
    "power_watts",
    "power_limit_watts",
)

Run = Callable[[Sequence[str]], str]


class DeviceSource(ABC):
    """Reads the devices of one kind: `read` is called in a separate thread, one call at a time, with a time limit.

    A reader needs no arguments, loads nothing before it is asked, and has no devices where there is no driver: an error
    is for a driver that is there and fails.
    """

    @abstractmethod
    def read(self) -> list[dict[str, Any]]:
        """One `device(...)` for each; `processes` hold every user's, as `pid` and `memory_bytes` alone."""

    def count(self) -> int:
        """Return the number of devices; override it if there is a cheaper way than `read`."""
        return len(self.read())


def device(index: int, processes: Sequence[dict[str, Any]] = (), **known: Any) -> dict[str, Any]:
    """A device of docs/api.md, without `accelerator`; what is not given is not known (None)."""
    unknown = known.keys() - set(_FIELDS)
    if unknown:
        raise TypeError(f"a device has no {', '.join(sorted(unknown))}")
    return {"index": index, **dict.fromkeys(_FIELDS), **known, "processes": list(processes)}


def run(command: Sequence[str]) -> str:
    """What a vendor's tool prints. Raises OSError and subprocess.SubprocessError, also when it takes too long."""
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=True, text=True, timeout=COMMAND_SECONDS
    ).stdout
