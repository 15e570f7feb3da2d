"""Intel GPUs through the optional command xpu-smi of Intel XPU Manager.

Names and units are from its user guide (`-j`); not run on a device yet.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

from .source import DeviceSource, FoundProcess, Run, device, run

COMMAND = "xpu-smi"
MIB = 1 << 20
KB = 1000  # the unit of its `ps`


class XpuSmiReader(DeviceSource):
    """Reads devices; none, without an error, if there is no command. Raises if the command fails."""

    def __init__(self, run_command: Run = run) -> None:
        self._run = run_command
        self._known: dict[int, dict[str, Any]] = {}  # values that do not change, by index

    def count(self) -> int:
        """Return the number of devices."""
        return len(self._indices())

    def read(self) -> list[dict[str, Any]]:
        """Return all devices."""
        indices = self._indices()
        processes = self._processes() if indices else {}
        return [self._device(index, processes.get(index, [])) for index in indices]

    def _indices(self) -> list[int]:
        if self._run is run and shutil.which(COMMAND) is None:
            return []
        return [int(found["device_id"]) for found in self._ask("discovery").get("device_list", [])]

    def _device(self, index: int, processes: list[FoundProcess]) -> dict[str, Any]:
        if index not in self._known:
            self._known[index] = self._ask("discovery", "-d", str(index))
        known = self._known[index]
        now = {row["metrics_type"]: row.get("value") for row in self._ask("stats", "-d", str(index))["device_level"]}
        used, total = now.get("XPUM_STATS_MEMORY_USED"), known.get("memory_physical_size_byte")
        return device(
            index,
            processes,
            name=known.get("device_name"),
            uuid=known.get("uuid"),
            memory_used_bytes=None if used is None else int(float(used) * MIB),
            memory_total_bytes=None if total is None else int(total),
            utilization_percent=now.get("XPUM_STATS_GPU_UTILIZATION"),
            temperature_celsius=now.get("XPUM_STATS_GPU_CORE_TEMPERATURE"),
            power_watts=now.get("XPUM_STATS_POWER"),
        )

    def _processes(self) -> dict[int, list[FoundProcess]]:
        try:
            rows = self._ask("ps").get("device_util_by_proc_list", [])
        except (
            OSError,
            ValueError,
            subprocess.SubprocessError,
        ):  # older versions have no ps: show the devices without processes
            return {}
        found: dict[int, list[FoundProcess]] = {}
        for row in rows:
            if row.get("process_name") != COMMAND:  # it lists itself on every device
                process: FoundProcess = {"pid": int(row["process_id"]), "memory_bytes": int(row["mem_size"]) * KB}
                found.setdefault(int(row["device_id"]), []).append(process)
        return found

    def _ask(self, *words: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._run([COMMAND, *words, "-j"]))
        if "error" in answer:
            raise OSError(f"{COMMAND} {' '.join(words)}: {answer['error']}")
        return answer
