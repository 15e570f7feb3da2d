"""Devices and host as users may see them: own processes named, those of others as a sum."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

from .host import HostReader
from .nvml import NvmlReader, process_owner

FRESH_SECONDS = 1.0

RankOfPid = Callable[[int], tuple[str, int] | None]
OwnerOfPid = Callable[[int], tuple[int, str] | None]


class DeviceReader:
    """Reads on demand, off the event loop; several askers within a second share a reading."""

    def __init__(
        self,
        nvml: NvmlReader | None = None,
        host: HostReader | None = None,
        owner_of_pid: OwnerOfPid = process_owner,
    ) -> None:
        self._nvml = nvml or NvmlReader()
        self._host = host or HostReader()
        self._owner_of_pid = owner_of_pid
        self._lock = asyncio.Lock()
        self._reading: tuple[list[dict[str, Any]], dict[str, Any]] = ([], {})
        self._read_at = float("-inf")

    async def indices(self) -> list[int]:
        """The indices of all CUDA devices."""
        return list(range(await asyncio.to_thread(self._nvml.count)))

    async def read(self, rank_of_pid: RankOfPid) -> dict[str, Any]:
        """`devices`, `host` and `processes_hidden` of docs/api.md."""
        async with self._lock:
            if time.monotonic() - self._read_at > FRESH_SECONDS:
                self._reading = await asyncio.to_thread(lambda: (self._nvml.read(), self._host.read()))
                self._read_at = time.monotonic()
        devices, host = self._reading
        shown = [self._with_owners(device, rank_of_pid) for device in devices]
        hidden = any(process["pid"] is None for device in shown for process in device["processes"])
        return {"devices": shown, "host": host, "processes_hidden": hidden}

    def _with_owners(self, device: dict[str, Any], rank_of_pid: RankOfPid) -> dict[str, Any]:
        own: list[dict[str, Any]] = []
        others_bytes, others = 0, 0
        for process in device["processes"]:
            owner = self._owner_of_pid(process["pid"])
            if owner is None or owner[0] != os.getuid():
                others += 1
                others_bytes += process["memory_bytes"] or 0
                continue
            group, rank = rank_of_pid(process["pid"]) or (None, None)
            own.append({**process, "name": owner[1], "group": group, "rank": rank, "mine": True})
        if others:
            fields = {"pid": None, "name": None, "group": None, "rank": None, "mine": False}
            own.append({**fields, "memory_bytes": others_bytes})
        return {**device, "processes": own}
