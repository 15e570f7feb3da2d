"""The interface of device readers: one class for each kind of device, found by an entry point group."""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

ENTRY_POINTS = "jupyter_dist.device_readers"
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


class FoundProcess(TypedDict):
    """A process of any user on a device; a driver may not report its memory."""

    pid: int
    memory_bytes: int | None


class DeviceSource(ABC):
    """Reads the devices of one kind: `read` is called in a separate thread, one call at a time, with a time limit.

    A reader takes no arguments, loads its library on first use, and returns no devices if there is no driver. Errors
    are for drivers that fail.
    """

    @abstractmethod
    def read(self) -> list[dict[str, Any]]:
        """Return a `device(...)` for each device, whose processes (of all users) have `pid` and `memory_bytes` only."""

    def count(self) -> int:
        """Return the number of devices; override it if there is a cheaper way than `read`."""
        return len(self.read())

    def names(self) -> list[str | None]:
        """Return each device's name in the variable of visible devices; None for a device that cannot be used."""
        return list(map(str, range(self.count())))


class LibrarySource(DeviceSource):
    """Reads through an optional library, loaded on first use; no devices, without an error, if there is no driver."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load
        self._loaded: Any = None
        self._failed = False

    def library(self) -> Any:
        """Return the library; None if there is none."""
        if self._loaded is None and not self._failed:
            try:
                self._loaded = self._load()
            except Exception:  # no package, no driver, no permission: errors of many classes, which all mean none
                self._failed = True
        return self._loaded


def device(index: int, processes: Sequence[FoundProcess] = (), **known: Any) -> dict[str, Any]:
    """Return a Device of docs/api.md, without `accelerator`; missing values are None (unknown)."""
    unknown = known.keys() - set(_FIELDS)
    if unknown:
        raise TypeError(f"a device has no {', '.join(sorted(unknown))}")
    return {"index": index, **dict.fromkeys(_FIELDS), **known, "processes": list(processes)}


def run(command: Sequence[str]) -> str:
    """Return the output of a vendor's tool. Raises OSError and subprocess.SubprocessError, also on a timeout."""
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=True, text=True, timeout=COMMAND_SECONDS
    ).stdout
