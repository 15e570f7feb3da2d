"""AMD devices through the optional Python package amdsmi, which comes with ROCm.

Field names and units are from AMD's reference of the package; not run on a device yet.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from .source import FoundProcess, LibrarySource, device

AmdSmi = Any  # the amdsmi module, or a replacement in tests
MIB = 1 << 20


def load_amdsmi() -> AmdSmi:
    """Import and initialize amdsmi. Raises if there is no driver or library."""
    amdsmi = importlib.import_module("amdsmi")
    amdsmi.amdsmi_init()
    return amdsmi


class AmdSmiReader(LibrarySource):
    """Reads devices; none, without an error, if there is no driver."""

    def __init__(self, load: Callable[[], AmdSmi] = load_amdsmi) -> None:
        super().__init__(load)

    def count(self) -> int:
        """Return the number of devices."""
        amdsmi = self.library()
        return len(amdsmi.amdsmi_get_processor_handles()) if amdsmi is not None else 0

    def read(self) -> list[dict[str, Any]]:
        """Return all devices."""
        amdsmi = self.library()
        if amdsmi is None:
            return []
        return [_device(amdsmi, i, handle) for i, handle in enumerate(amdsmi.amdsmi_get_processor_handles())]


def _device(amdsmi: AmdSmi, index: int, handle: Any) -> dict[str, Any]:
    def ask(name: str, *more: Any) -> Any:
        """Return a value, or None if the device does not support it."""
        try:
            return getattr(amdsmi, name)(handle, *more)
        except amdsmi.AmdSmiException:
            return None

    asic, memory = ask("amdsmi_get_gpu_asic_info"), ask("amdsmi_get_gpu_vram_usage")
    power = ask("amdsmi_get_power_info")
    used, total = _number(memory, "vram_used"), _number(memory, "vram_total")
    watts = _number(power, "current_socket_power")
    temperature = ask(
        "amdsmi_get_temp_metric", amdsmi.AmdSmiTemperatureType.HOTSPOT, amdsmi.AmdSmiTemperatureMetric.CURRENT
    )
    return device(
        index,
        [_process(found) for found in ask("amdsmi_get_gpu_process_list") or []],
        name=(asic or {}).get("market_name"),
        uuid=ask("amdsmi_get_gpu_device_uuid"),
        memory_used_bytes=None if used is None else int(used * MIB),
        memory_total_bytes=None if total is None else int(total * MIB),
        utilization_percent=_number(ask("amdsmi_get_gpu_activity"), "gfx_activity"),
        temperature_celsius=temperature,
        # Cards before MI300 only have the average.
        power_watts=watts if watts is not None else _number(power, "average_socket_power"),
        power_limit_watts=_number(power, "power_limit"),
    )


def _process(found: dict[str, Any]) -> FoundProcess:
    used = _number(found.get("memory_usage"), "vram_mem")
    return {"pid": int(found["pid"]), "memory_bytes": None if used is None else int(used)}


def _number(values: dict[str, Any] | None, name: str) -> float | int | None:
    """Return a number; amdsmi writes "N/A" if a card has none."""
    value = (values or {}).get(name)
    return value if isinstance(value, int | float) else None
