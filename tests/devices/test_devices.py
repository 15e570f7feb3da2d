"""Devices, with values as an H100 machine gave them, passed in at the seam: the pynvml module object.

No GPU is needed or used here; tests/gpu reads real ones.
"""

import asyncio
import os
from types import SimpleNamespace

import pytest

from jupyter_dist.server.devices.host import HostReader
from jupyter_dist.server.devices.nvml import NvmlReader, process_owner
from jupyter_dist.server.devices.reader import DeviceReader

GIB = 1 << 30
MINE, MINE_TOO, THEIRS, HIDDEN = 4242, 4243, 7_654_321, 7_654_322


class NVMLError(Exception):
    pass


def not_supported(*arguments):
    raise NVMLError


def nvml(**replaced):
    """What pynvml answers on two H100 80GB HBM3: written by hand in its shapes and units, not recorded on one."""
    processes = [
        [SimpleNamespace(pid=MINE, usedGpuMemory=3 * GIB), SimpleNamespace(pid=THEIRS, usedGpuMemory=5 * GIB)],
        [SimpleNamespace(pid=MINE_TOO, usedGpuMemory=None), SimpleNamespace(pid=HIDDEN, usedGpuMemory=7 * GIB)],
    ]
    functions = {
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda handle: "NVIDIA H100 80GB HBM3",
        "nvmlDeviceGetUUID": lambda handle: b"GPU-6f3c4d1e-8a1b-2f6e-9d7a-0c5b3e2a1f0%d" % handle,
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(total=85520809984, free=76930875392, used=8589934592),
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=97, memory=41),
        "nvmlDeviceGetTemperature": lambda handle, sensor: 64,
        "nvmlDeviceGetPowerUsage": lambda handle: 612345,
        "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 700000,
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: processes[handle],
        "nvmlDeviceGetGraphicsRunningProcesses": lambda handle: [],
    }
    return SimpleNamespace(NVMLError=NVMLError, NVML_TEMPERATURE_GPU=0, **{**functions, **replaced})


def owner(pid):
    return {MINE: (os.getuid(), "python"), MINE_TOO: (os.getuid(), "python"), THEIRS: (os.getuid() + 1, "x")}.get(pid)


def read(module, rank_of_pid=lambda pid: None):
    async def main():
        return await DeviceReader(NvmlReader(lambda: module), owner_of_pid=owner).read(rank_of_pid)

    return asyncio.run(main())


def test_devices_as_they_are_shown():
    shown = read(nvml(), lambda pid: ("train", 0) if pid == MINE else None)
    first, second = shown["devices"]
    processes = first.pop("processes")
    assert first == {
        "index": 0,
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": "GPU-6f3c4d1e-8a1b-2f6e-9d7a-0c5b3e2a1f00",
        "memory_used_bytes": 8589934592,
        "memory_total_bytes": 85520809984,
        "utilization_percent": 97,
        "temperature_celsius": 64,
        "power_watts": 612.345,
        "power_limit_watts": 700.0,
    }
    assert processes == [
        {"pid": MINE, "memory_bytes": 3 * GIB, "name": "python", "group": "train", "rank": 0, "mine": True},
        {"pid": None, "memory_bytes": 5 * GIB, "name": None, "group": None, "rank": None, "mine": False},
    ]
    assert [process["pid"] for process in second["processes"]] == [MINE_TOO, None]
    assert second["processes"][0]["memory_bytes"] is None
    assert shown["processes_hidden"]


def test_nothing_of_other_users_is_told_but_how_much():
    text = repr(read(nvml()))
    assert str(THEIRS) not in text
    assert str(HIDDEN) not in text


@pytest.mark.parametrize(
    ("function", "fields"),
    [
        ("nvmlDeviceGetPowerUsage", ["power_watts"]),
        ("nvmlDeviceGetTemperature", ["temperature_celsius"]),
        ("nvmlDeviceGetUtilizationRates", ["utilization_percent"]),
        ("nvmlDeviceGetMemoryInfo", ["memory_used_bytes", "memory_total_bytes"]),
    ],
)
def test_what_a_device_does_not_tell_is_null(function, fields):
    device = read(nvml(**{function: not_supported}))["devices"][0]
    assert [name for name, value in device.items() if value is None] == fields


def test_a_machine_without_a_driver_has_no_devices_and_no_error():
    def fail():
        raise OSError("libnvidia-ml.so.1: cannot open shared object file")

    reader = DeviceReader(NvmlReader(fail))
    assert asyncio.run(reader.indices()) == []
    shown = asyncio.run(reader.read(lambda pid: None))
    assert shown["devices"] == []
    assert not shown["processes_hidden"]


def test_nvml_is_not_loaded_before_it_is_asked():
    NvmlReader(lambda: pytest.fail("loaded"))


def test_the_host():
    host = HostReader().read()
    assert 0 < host["memory_used_bytes"] < host["memory_total_bytes"]
    assert host["cpu_count"] >= 1
    assert host["load_1m"] >= 0


def test_owners_of_processes():
    assert process_owner(os.getpid())[0] == os.getuid()
    assert process_owner(2**22 - 1) is None
