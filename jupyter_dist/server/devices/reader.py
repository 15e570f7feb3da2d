"""Devices and host as users may see them: the user's own processes by name, processes of other users as a sum."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import psutil

from jupyter_dist.protocol.accelerators import ACCELERATORS, given_devices
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import machine
from jupyter_dist.system import points
from jupyter_dist.system.limits import within

from .nvml import process_owner
from .samples import DeviceReadings
from .source import ENTRY_POINTS, DeviceSource

FRESH_SECONDS = 1.0
READ_SECONDS = 10.0  # a driver without persistence mode takes seconds for the first reading

T = TypeVar("T")
RankOfPid = Callable[[int], tuple[str, int] | None]
OwnerOfPid = Callable[[int], tuple[int, str] | None]


def find_sources() -> dict[str, DeviceSource]:
    """Return a reader for each accelerator that has one, and the readers of other packages."""
    own = {row.name: row.reader for row in ACCELERATORS.values() if row.reader}
    return {name: reader() for name, reader in points.load(ENTRY_POINTS, DeviceSource, own).items()}


@dataclass(frozen=True)
class HostReader:
    """Reads the host through psutil; the first `cpu_percent` is the average since the process started."""

    def read(self) -> machine.HostModel:
        """Return the host's load and memory."""
        memory = psutil.virtual_memory()
        return {
            "cpu_percent": psutil.cpu_percent(interval=None),
            "cpu_count": len(os.sched_getaffinity(0)),
            "load_1m": os.getloadavg()[0],
            "memory_used_bytes": memory.total - memory.available,
            "memory_total_bytes": memory.total,
        }


class TimedSource:
    """One source, read in its own thread, so that a driver that hangs blocks neither the server nor other sources."""

    def __init__(self, name: str, source: DeviceSource, seconds: float) -> None:
        row = ACCELERATORS.get(name)
        self.name = name
        self.label = row.label if row is not None else name
        self._source = source
        self._seconds = seconds
        self._asked: concurrent.futures.Future[Any] | None = None
        self._turn = asyncio.Lock()  # held no longer than these seconds

    async def usable(self) -> dict[int, str]:
        """Return the devices that ranks may use, by index, with their names. Raises `timed_out`, `bad_devices`."""
        names = await self._ask(self._source.names)
        there = {index: name for index, name in enumerate(names) if name is not None}
        if self.name not in ACCELERATORS:  # of another package
            return there
        given = given_devices(self.name, os.environ, len(names))
        return there if given is None else _only(there, given)

    async def read(self) -> list[dict[str, Any]]:
        """All devices. Raises JupyterDistError `timed_out`, `bad_devices`."""
        return [{**device, "accelerator": self.name} for device in await self._ask(self._source.read)]

    async def _ask(self, ask: Callable[[], T]) -> T:
        async with self._turn:  # two groups that start together, or a start while a page shows the devices
            return await self._ask_now(ask)

    async def _ask_now(self, ask: Callable[[], T]) -> T:
        hint = "Look whether its own tool still answers, or choose accelerator 'cpu'."
        before = self._asked
        if before is not None and not before.done():
            message = f"The {self.label} devices cannot be read: the driver has not answered an earlier reading yet."
            raise JupyterDistError("timed_out", message, hint)
        try:
            self._asked = future = _in_thread(ask)
            return await within(self._seconds, asyncio.shield(asyncio.wrap_future(future)))
        except asyncio.TimeoutError as err:
            message = f"The {self.label} devices cannot be read: the driver did not answer within {self._seconds:g} s."
            raise JupyterDistError("timed_out", message, hint) from err
        except Exception as err:  # of a vendor's library, of another package's reader, or no more threads
            message = f"The {self.label} devices cannot be read: {type(err).__name__}: {str(err)[:200]}"
            raise JupyterDistError("bad_devices", message, hint) from err


class DeviceReader:
    """Reads on demand, off the event loop; several askers within a second share a reading."""

    def __init__(
        self,
        sources: Mapping[str, DeviceSource] | None = None,
        host: HostReader | None = None,
        owner_of_pid: OwnerOfPid = process_owner,
        seconds: float = READ_SECONDS,
    ) -> None:
        found = find_sources() if sources is None else sources
        self._sources = [TimedSource(name, source, seconds) for name, source in found.items()]
        self._host = host or HostReader()
        self._owner_of_pid = owner_of_pid
        self.past = DeviceReadings()
        self._lock = asyncio.Lock()
        self._reading: tuple[list[dict[str, Any]], machine.HostModel, list[str]] | None = None
        self._read_at = float("-inf")

    async def usable(self, accelerator: str = "auto") -> dict[str, dict[int, str]]:
        """Return the devices that ranks may use, of this accelerator or of all: by accelerator, their names by index.

        Only the devices that the server's environment makes visible count, in that order: on a shared machine, other
        users have the rest.

        Raises:
            JupyterDistError: `timed_out` or `bad_devices`, if a driver does not answer.
        """
        asked = [source for source in self._sources if accelerator in ("auto", source.name)]
        found = await asyncio.gather(*(source.usable() for source in asked))
        return {source.name: devices for source, devices in zip(asked, found, strict=True)}

    async def read(self, rank_of_pid: RankOfPid) -> machine.Devices:
        """Return devices and host; only the user's own processes are named."""
        async with self._lock:
            if self._reading is None or time.monotonic() - self._read_at > FRESH_SECONDS:
                self._reading = await self._read()
                self._read_at = time.monotonic()
                self.past.add(time.time(), self._reading[0])
            devices, host, problems = self._reading
        shown = [self._with_owners(device, rank_of_pid) for device in devices]
        hidden = any(process["pid"] is None for device in shown for process in device["processes"])
        return {"devices": shown, "host": host, "processes_hidden": hidden, "problems": problems}

    async def _read(self) -> tuple[list[dict[str, Any]], machine.HostModel, list[str]]:
        found = await asyncio.gather(*(source.read() for source in self._sources), return_exceptions=True)
        devices = [device for part in found if not isinstance(part, BaseException) for device in part]
        problems = [part.message for part in found if isinstance(part, JupyterDistError)]
        return devices, await asyncio.to_thread(self._host.read), problems

    def _with_owners(self, device: dict[str, Any], rank_of_pid: RankOfPid) -> machine.Device:
        own: list[machine.DeviceProcess] = []
        others_bytes, others = 0, 0
        for process in device["processes"]:
            owner = self._owner_of_pid(process["pid"])
            if owner is None or owner[0] != os.getuid():
                others += 1
                others_bytes += process["memory_bytes"] or 0
                continue
            group, rank = rank_of_pid(process["pid"]) or (None, None)
            own.append(
                {
                    "pid": process["pid"],
                    "name": owner[1],
                    "memory_bytes": process["memory_bytes"],
                    "group": group,
                    "rank": rank,
                    "mine": True,
                }
            )
        if others:
            own.append(
                {
                    "pid": None,
                    "name": None,
                    "memory_bytes": others_bytes,
                    "group": None,
                    "rank": None,
                    "mine": False,
                }
            )
        return cast("machine.Device", {**device, "processes": own})


def _only(there: Mapping[int, str], given: list[str]) -> dict[int, str]:
    """Return the devices that are given by index, by name or by the beginning of a name."""
    found: dict[int, str] = {}
    for word in given:
        for index, name in there.items():
            if word == str(index) or (not word.isdigit() and name.startswith(word)):
                found.setdefault(index, name)
                break
        else:
            return found  # as drivers do: devices after a missing one are not visible
    return found


def _in_thread(ask: Callable[[], T]) -> concurrent.futures.Future[T]:
    """Call `ask` in a thread that the server does not wait for when it ends, unlike the threads of a pool."""
    future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def call() -> None:
        try:
            future.set_result(ask())
        except BaseException as err:  # outermost level of the thread: the caller must get the error
            future.set_exception(err)

    threading.Thread(target=call, name="read devices", daemon=True).start()
    return future
