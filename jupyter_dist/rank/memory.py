"""The memory of one rank, and releasing what it does not need."""

from __future__ import annotations

import ctypes

import torch

from jupyter_dist.protocol.accelerators import DEVICE_TYPES
from jupyter_dist.rank.guard.own import gc, os

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Memory:
    """Reads memory counters; opens its file early, so that it works even if no descriptor is left."""

    def __init__(self, device: str) -> None:
        self._device = torch.device(device)
        self._module = getattr(torch, self._device.type)
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)

    def sample(self) -> dict[str, int | None]:
        """Return the fields of `sample` (docs/messaging.md); never initializes the device."""
        return {"resident_bytes": self.resident_bytes(), **self._device_counters()}

    def resident_bytes(self) -> int:
        """Return the resident memory of the process."""
        return int(os.pread(self._statm, 128, 0).split()[1]) * _PAGE_BYTES

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
        self._module.empty_cache()
        return True

    def release(self) -> int:
        """Collect garbage and release cached memory (main thread); return the bytes freed."""
        before = self.sample()
        gc.collect()
        on_device = self._on_device()
        if on_device:
            self._module.empty_cache()
        ctypes.CDLL(None).malloc_trim(0)
        after = self.sample()
        kind = "reserved_bytes" if on_device else "resident_bytes"
        return max(0, (before[kind] or 0) - (after[kind] or 0))

    def _on_device(self) -> bool:
        return self._device.type in DEVICE_TYPES and bool(self._module.is_initialized())

    def _device_counters(self) -> dict[str, int | None]:
        if not self._on_device():
            names = ("allocated_bytes", "reserved_bytes", "peak_bytes", "device_used_bytes")
            return dict.fromkeys(names)
        # The current device is per thread, so the side thread must pass it.
        module = self._module
        # Not every torch has it for every kind of device.
        free, total = module.mem_get_info(self._device) if hasattr(module, "mem_get_info") else (None, None)
        return {
            "allocated_bytes": module.memory_allocated(self._device),
            "reserved_bytes": module.memory_reserved(self._device),
            "peak_bytes": module.max_memory_allocated(self._device),
            "device_used_bytes": None if free is None or total is None else total - free,
        }
