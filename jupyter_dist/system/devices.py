"""The devices of this machine by the driver's own library: for node agents, which have the standard library alone."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from jupyter_dist.protocol import accelerators

from .limits import within

if TYPE_CHECKING:
    from jupyter_dist.protocol.models.models import NodeDevice

LIBRARY = "libnvidia-ml.so.1"
READ_SECONDS = 10.0  # a driver that loads firmware takes seconds; a hanging driver must not keep a node out
TEXT_BYTES = 96

Read = Callable[[], "list[NodeDevice]"]


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def read_nvml() -> list[NodeDevice]:
    """Return the NVIDIA devices of this machine; none without the driver. Loading the driver may take seconds."""
    try:
        nvml = ctypes.CDLL(LIBRARY)
    except OSError:
        return []
    count = ctypes.c_uint()
    if nvml.nvmlInit_v2() != 0:
        return []
    try:
        nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
        return [_device(nvml, index) for index in range(count.value)]
    finally:
        nvml.nvmlShutdown()


async def read_devices(read: Read = read_nvml) -> list[NodeDevice]:
    """Return this machine's devices; none if the driver fails, or does not answer in time."""
    loop, found = asyncio.get_running_loop(), asyncio.Event()
    devices: list[NodeDevice] = []

    def work() -> None:
        with contextlib.suppress(OSError, AttributeError, ValueError):  # a library of another kind or age
            devices.extend(read())
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(found.set)

    threading.Thread(target=work, name="devices", daemon=True).start()  # a daemon: exiting waits for no driver
    with contextlib.suppress(asyncio.TimeoutError):
        await within(READ_SECONDS, found.wait())
    return list(devices)


def visible(devices: list[NodeDevice], environment: Mapping[str, str]) -> list[NodeDevice]:
    """Return the devices that this environment leaves to ranks, in its order; parts of devices have only their name."""
    if not devices:
        return []
    given = accelerators.given_devices(accelerators.OF_NVML, environment, len(devices))
    return devices if given is None else [_named(devices, word) for word in given]


def _named(devices: list[NodeDevice], word: str) -> NodeDevice:
    for device in devices:
        if word == str(device["index"]) or (not word.isdigit() and str(device["uuid"]).startswith(word)):
            return device
    return {"index": None, "name": word, "uuid": word, "memory_bytes": None}


def _device(nvml: Any, index: int) -> NodeDevice:
    handle, memory = ctypes.c_void_p(), _Memory()
    nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle))
    has_memory = nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0
    return {
        "index": index,
        "name": _text(nvml.nvmlDeviceGetName, handle) or f"device {index}",
        "uuid": _text(nvml.nvmlDeviceGetUUID, handle),
        "memory_bytes": memory.total if has_memory else None,
    }


def _text(ask: Any, handle: Any) -> str | None:
    text = ctypes.create_string_buffer(TEXT_BYTES)
    return text.value.decode("utf-8", "replace") if ask(handle, text, ctypes.c_uint(TEXT_BYTES)) == 0 else None
