"""The memory of one rank: its counters, their changes by a cell, a reserve, and the release of unused memory."""

from __future__ import annotations

import contextlib
import ctypes
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from resource import RUSAGE_SELF, getrusage
from typing import TYPE_CHECKING, NamedTuple

import torch

from jupyter_dist.protocol.accelerators import DEVICE_TYPES
from jupyter_dist.rank.guard.own import gc, os, threading

if TYPE_CHECKING:
    from collections.abc import Callable

    from jupyter_dist.protocol.models.memory import CellMemory

RESERVE_BYTES = 8 << 20
OF_DEVICE = ("allocated_bytes", "reserved_bytes", "peak_bytes")
MIN_CHANGE_BYTES = 1 << 20  # smaller changes of a cell are not reported

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Mark(NamedTuple):
    """The memory that a rank holds at one moment, and the peak until then."""

    held_bytes: int
    peak_bytes: int


class MemoryCounters:
    """Reads memory counters; opens its file early, so that it works even if no descriptor is left.

    Torch's counters have a lock, which the main thread may hold for as long as a collective hangs. While other threads
    may not ask for that reason, they get the numbers of the last time.
    """

    def __init__(self, device: str, may_ask: Callable[[], bool] = lambda: True) -> None:
        """`may_ask` returns whether a thread other than the main thread may ask torch (main_thread_moves)."""
        self._may_ask = may_ask
        self._of_device: dict[str, int | None] = dict.fromkeys(OF_DEVICE)
        self.is_away = False  # whether tensors are not on the device: a call to it may wait until they are back
        self.num_alloc_retries: int | None = None  # how often torch has freed its cache to find room, as last counted
        self._device = torch.device(device)
        self._module = getattr(torch, self._device.type)
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._reserve: mmap | None = None

    @property
    def device_type(self) -> str:
        """Torch's name for the kind of device that the rank's tensors are on."""
        return self._device.type

    def sample(self) -> dict[str, int | None]:
        """Return the fields of `sample` (docs/messaging.md); never initializes the device, nor waits for it."""
        if self.is_away:
            return {"resident_bytes": self.resident_bytes(), **dict.fromkeys(OF_DEVICE), "device_used_bytes": None}
        return {**self.counters(), "device_used_bytes": self._device_used_bytes()}

    def resident_bytes(self) -> int:
        """Return the resident memory of the process."""
        return int(os.pread(self._statm, 128, 0).split()[1]) * _PAGE_BYTES

    def counters(self) -> dict[str, int | None]:
        """Return the counters of the process and of torch; does not query the device, which may be busy."""
        if self._on_device() and self._can_ask():
            self._of_device = self._ask_torch()
        return {"resident_bytes": self.resident_bytes(), **self._of_device}

    def _ask_torch(self) -> dict[str, int | None]:
        """Return torch's counters of the device, in one call where it has a table of them."""
        module, device = self._module, self._device  # the current device is per thread: the side thread must pass it
        if not hasattr(module, "memory_stats_as_nested_dict"):
            allocated, reserved = module.memory_allocated(device), module.memory_reserved(device)
            peak = module.max_memory_allocated(device)
        else:
            found = module.memory_stats_as_nested_dict(device)
            of_tensors = found["allocated_bytes"]["all"]
            allocated, peak = of_tensors["current"], of_tensors["peak"]
            reserved = found["reserved_bytes"]["all"]["current"]
            retries = found.get("num_alloc_retries")
            self.num_alloc_retries = None if retries is None else int(retries)
        return {"allocated_bytes": allocated, "reserved_bytes": reserved, "peak_bytes": peak}

    def busy_percent(self) -> int | None:
        """Return the percent of the last second in which the device ran anything; None if that is not known.

        NVIDIA's library answers it without the device's own queue, so it does not wait for kernels.
        """
        if not self._on_device() or not hasattr(self._module, "utilization"):
            return None
        # The library may be missing (nvidia-ml-py), and parts of a device (MIG) do not count.
        with contextlib.suppress(Exception):
            return int(self._module.utilization(self._device))
        return None

    # -- changes by a cell --------------------------------------------------------------------------

    def mark(self) -> Mark:
        """Return the memory of the rank: tensors on its device; on CPU the resident memory. Takes microseconds."""
        if self._device.type not in DEVICE_TYPES:
            # Not the high-water mark of /proc/self/status: reading that takes 30 times as long.
            return Mark(self.resident_bytes(), getrusage(RUSAGE_SELF).ru_maxrss << 10)
        if not self._module.is_initialized():
            return Mark(0, 0)
        if not hasattr(self._module, "memory_stats_as_nested_dict"):
            return Mark(self._module.memory_allocated(self._device), self._module.max_memory_allocated(self._device))
        # memory_allocated() makes a flat dictionary of all its counters first, which takes longer than a small cell.
        allocated = self._module.memory_stats_as_nested_dict(self._device)["allocated_bytes"]["all"]
        return Mark(allocated["current"], allocated["peak"])

    def since(self, begun: Mark) -> CellMemory | None:
        """Return the changes since a mark; None if they are too small to report.

        The peak is known if it is a new one. The counter is not reset for each cell, because users measure across
        cells.
        """
        now = self.mark()
        added = now.held_bytes - begun.held_bytes
        is_new_peak = now.peak_bytes > max(begun.peak_bytes, begun.held_bytes)
        above = now.peak_bytes - begun.held_bytes if is_new_peak else 0
        if abs(added) < MIN_CHANGE_BYTES and above < MIN_CHANGE_BYTES:
            return None
        return {
            "kind": "allocated" if self._device.type in DEVICE_TYPES else "resident",
            "added_bytes": added,
            "peak_bytes": max(now.peak_bytes, now.held_bytes) if is_new_peak else None,
        }

    # -- when it is short ---------------------------------------------------------------------------

    def hold_reserve(self) -> None:
        """Keep addresses for a report when memory is short; they take no memory until they are used."""
        if self._reserve is None:
            with contextlib.suppress(OSError, ValueError, MemoryError):  # memory is still short
                self._reserve = mmap(-1, RESERVE_BYTES, MAP_PRIVATE | MAP_ANONYMOUS)

    def use_reserve(self) -> None:
        """Release the addresses: there is room for a report now."""
        if self._reserve is not None:
            self._reserve.close()
            self._reserve = None

    # -- giving it back -----------------------------------------------------------------------------

    def in_use(self) -> tuple[int, int] | None:
        """Return the bytes allocated and reserved on the device; None on CPU, or if the device is not in use."""
        if not self._on_device():
            return None
        return self._module.memory_allocated(self._device), self._module.memory_reserved(self._device)

    def release_if_changed(self, before: tuple[int, int] | None) -> bool:
        """Collect garbage and empty the device's cache if `in_use` has changed (main thread); return whether it did."""
        after = self.in_use()
        if after is None or after == before:
            return False
        gc.collect()
        with contextlib.suppress(RuntimeError):  # the device is lost: no memory is released
            self._module.empty_cache()
        return True

    def release(self) -> int:
        """Collect garbage and release cached memory (main thread); return the bytes freed."""
        before = self.sample()
        gc.collect()
        on_device = self._on_device()
        if on_device:
            with contextlib.suppress(RuntimeError):  # the device is lost
                self._module.empty_cache()
        self.trim()
        after = self.sample()
        kind = "reserved_bytes" if on_device else "resident_bytes"
        return max(0, (before[kind] or 0) - (after[kind] or 0))

    @staticmethod
    def trim() -> None:
        """Give freed host memory back to the system."""
        ctypes.CDLL(None).malloc_trim(0)

    def _can_ask(self) -> bool:
        return threading.current_thread() is threading.main_thread() or self._may_ask()

    def _on_device(self) -> bool:
        return self._device.type in DEVICE_TYPES and bool(self._module.is_initialized())

    def _device_used_bytes(self) -> int | None:
        # Not every torch has it for every kind of device.
        if not self._on_device() or not hasattr(self._module, "mem_get_info"):
            return None
        try:
            free, total = self._module.mem_get_info(self._device)
        except RuntimeError:  # the device is lost (collectives/lostdevice.py): the failed cell has reported it
            return None
        return int(total - free)
