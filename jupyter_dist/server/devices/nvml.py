"""NVIDIA devices through NVML, which is optional and loaded on first use."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import psutil

from .source import FoundProcess, LibrarySource, device

Nvml = Any  # the pynvml module, or a replacement in tests


def load_nvml() -> Nvml:
    """Import and initialize nvidia-ml-py. Raises if there is no driver or library."""
    nvml = importlib.import_module("pynvml")
    nvml.nvmlInit()
    return nvml


class NvmlReader(LibrarySource):
    """Reads devices; none, without an error, if there is no driver."""

    def __init__(self, load: Callable[[], Nvml] = load_nvml) -> None:
        super().__init__(load)

    def count(self) -> int:
        """Return the number of devices."""
        nvml = self.library()
        return int(nvml.nvmlDeviceGetCount()) if nvml is not None else 0

    def read(self) -> list[dict[str, Any]]:
        """The devices of docs/api.md; `processes` still hold every user's, with pid and bytes alone."""
        nvml = self.library()
        if nvml is None:
            return []
        return [self._device(nvml, index) for index in range(self.count())]

    def _device(self, nvml: Nvml, index: int) -> dict[str, Any]:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        memory = _value(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
        utilization = _value(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
        power = _value(nvml, nvml.nvmlDeviceGetPowerUsage, handle)
        limit = _value(nvml, nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
        return device(
            index,
            self._processes(nvml, handle),
            name=_text(_value(nvml, nvml.nvmlDeviceGetName, handle)),
            uuid=_text(_value(nvml, nvml.nvmlDeviceGetUUID, handle)),
            memory_used_bytes=memory.used if memory is not None else None,
            memory_total_bytes=memory.total if memory is not None else None,
            utilization_percent=utilization.gpu if utilization is not None else None,
            temperature_celsius=_value(nvml, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            power_watts=power / 1000 if power is not None else None,
            power_limit_watts=limit / 1000 if limit is not None else None,
        )

    def _processes(self, nvml: Nvml, handle: Any) -> list[FoundProcess]:
        found: dict[int, int | None] = {}
        for ask in (nvml.nvmlDeviceGetComputeRunningProcesses, nvml.nvmlDeviceGetGraphicsRunningProcesses):
            for process in _value(nvml, ask, handle) or []:
                # A process that computes and draws is in both lists, with the same memory.
                found[int(process.pid)] = process.usedGpuMemory
        return [{"pid": pid, "memory_bytes": used} for pid, used in sorted(found.items())]


def process_owner(pid: int) -> tuple[int, str] | None:
    """The uid and name of a process; None when it is gone or hidden."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return process.uids().real, process.name()
    return None


def _value(nvml: Nvml, ask: Callable[..., Any], *arguments: Any) -> Any:
    """Return a value, or None if the device does not support it."""
    try:
        return ask(*arguments)
    except nvml.NVMLError:
        return None


def _text(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
