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
        """Return the number of devices; a device that is divided into parts (MIG) counts as its parts."""
        nvml = self.library()
        return len(_handles(nvml)) if nvml is not None else 0

    def names(self) -> list[str | None]:
        """Return the UUID of each device, because CUDA may number devices in another order; None for a lost device."""
        nvml = self.library()
        handles = _handles(nvml) if nvml is not None else []
        return [None if lost else _text(_value(nvml, nvml.nvmlDeviceGetUUID, handle)) for handle, lost in handles]

    def read(self) -> list[dict[str, Any]]:
        """Return the devices as docs/api.md has them; `processes` has every user's, with pid and bytes only."""
        nvml = self.library()
        if nvml is None:
            return []
        return [
            device(index, name=f"does not respond: {lost}") if lost else self._device(nvml, index, handle)
            for index, (handle, lost) in enumerate(_handles(nvml))
        ]

    def _device(self, nvml: Nvml, index: int, handle: Any) -> dict[str, Any]:
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


def _handles(nvml: Nvml) -> list[tuple[Any, str | None]]:
    """Return the handle of each device that ranks could use, and the driver's reason if it does not respond."""
    found: list[tuple[Any, str | None]] = []
    for index in range(int(nvml.nvmlDeviceGetCount())):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as err:
            found.append((None, str(err) or type(err).__name__))
            continue
        lost = _why_lost(nvml, handle)
        found += [(handle, lost)] if lost else [(part, None) for part in _parts(nvml, handle) or [handle]]
    return found


def _why_lost(nvml: Nvml, handle: Any) -> str | None:
    """Return the driver's reason if a device fell off the bus or has to be reset; None if it responds."""
    try:
        nvml.nvmlDeviceGetMemoryInfo(handle)
    except nvml.NVMLError as err:
        if getattr(err, "value", None) in (nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED):
            return str(err) or type(err).__name__
    return None


def _parts(nvml: Nvml, handle: Any) -> list[Any]:
    """Return the parts of a device that is divided (MIG); none if it is not."""
    mode = _value(nvml, nvml.nvmlDeviceGetMigMode, handle)
    if not mode or mode[0] != nvml.NVML_DEVICE_MIG_ENABLE:
        return []
    number = _value(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    parts = (_value(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index) for index in range(number))
    return [part for part in parts if part is not None]


def process_owner(pid: int) -> tuple[int, str] | None:
    """Return the uid and name of a process; None if it has ended or is hidden."""
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
