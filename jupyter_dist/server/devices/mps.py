"""Apple's GPU through ioreg, which comes with macOS. It is only shown: groups need Linux.

The names in the registry are Apple's and not documented; not run on a Mac yet.
"""

from __future__ import annotations

import plistlib
import sys
from typing import Any

import psutil

from .source import DeviceSource, Run, device, run

# -a: a property list; IOAccelerator: the class of graphics drivers.
COMMAND = ("ioreg", "-r", "-d", "1", "-w", "0", "-c", "IOAccelerator", "-a")


class MpsReader(DeviceSource):
    """Reads the GPU of a Mac; none, without an error, on other systems."""

    def __init__(self, run_command: Run = run) -> None:
        self._run = run_command

    def read(self) -> list[dict[str, Any]]:
        """Return the GPU, which shares the memory of the machine."""
        if self._run is run and sys.platform != "darwin":
            return []
        printed = self._run(COMMAND).encode()
        entries = plistlib.loads(printed) if printed.strip() else []
        return [_device(index, entry) for index, entry in enumerate(entries)]


def _device(index: int, entry: dict[str, Any]) -> dict[str, Any]:
    now = entry.get("PerformanceStatistics", {})
    return device(
        index,
        name=entry.get("model"),
        memory_used_bytes=now.get("In use system memory"),
        memory_total_bytes=psutil.virtual_memory().total,
        utilization_percent=now.get("Device Utilization %"),
    )
