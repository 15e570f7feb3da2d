"""Devices, with values in the shapes and units of each vendor's documentation, passed in at the seam of its reader.

No GPU is needed or used here; tests/agent/test_gpu.py reads real ones. None of the values was recorded by this project:
NVML's, amdsmi's and xpu-smi's are written by hand from their references, ioreg's from what a Mac printed elsewhere.
"""

import asyncio
import json
import os
import plistlib
import threading
import time
from types import SimpleNamespace

import pytest

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.devices.amdsmi import AmdSmiReader
from jupyter_dist.server.devices.mps import MpsReader
from jupyter_dist.server.devices.nvml import NvmlReader, process_owner
from jupyter_dist.server.devices.reader import DeviceReader, HostReader, find_sources
from jupyter_dist.server.devices.source import DeviceSource, device
from jupyter_dist.server.devices.xpusmi import XpuSmiReader

GIB = 1 << 30
MINE, MINE_TOO, THEIRS, HIDDEN = 4242, 4243, 7_654_321, 7_654_322


class NVMLError(Exception):
    def __init__(self, value=3):  # NVML_ERROR_NOT_SUPPORTED
        super().__init__({3: "Not Supported", 15: "GPU is lost", 16: "GPU requires reset"}[value])
        self.value = value


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
        "nvmlDeviceGetMigMode": not_supported,
    }
    numbers = {
        "NVML_TEMPERATURE_GPU": 0,
        "NVML_DEVICE_MIG_ENABLE": 1,
        "NVML_ERROR_GPU_IS_LOST": 15,
        "NVML_ERROR_RESET_REQUIRED": 16,
    }
    return SimpleNamespace(NVMLError=NVMLError, **{**numbers, **functions, **replaced})


def owner(pid):
    return {MINE: (os.getuid(), "python"), MINE_TOO: (os.getuid(), "python"), THEIRS: (os.getuid() + 1, "x")}.get(pid)


def read(module, rank_of_pid=lambda pid: None):
    async def main():
        return await DeviceReader({"cuda": NvmlReader(lambda: module)}, owner_of_pid=owner).read(rank_of_pid)

    return asyncio.run(main())


def test_devices_as_they_are_shown():
    shown = read(nvml(), lambda pid: ("train", 0) if pid == MINE else None)
    first, second = shown["devices"]
    processes = first.pop("processes")
    assert first == {
        "index": 0,
        "accelerator": "cuda",
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


def usable(module, monkeypatch, **environment):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return asyncio.run(DeviceReader({"cuda": NvmlReader(lambda: module)}).usable("cuda"))["cuda"]


FIRST, SECOND = (f"GPU-6f3c4d1e-8a1b-2f6e-9d7a-0c5b3e2a1f0{index}" for index in (0, 1))


@pytest.mark.parametrize(
    ("value", "devices"),
    [
        ("1", {1: SECOND}),
        ("1,0", {1: SECOND, 0: FIRST}),
        (f"{SECOND},0", {1: SECOND, 0: FIRST}),
        ("", {}),
        ("0,7,1", {0: FIRST}),
        ("NoDevFiles", {}),
    ],
)
def test_the_servers_own_environment_says_which_devices_ranks_may_use(monkeypatch, value, devices):
    assert usable(nvml(), monkeypatch) == {0: FIRST, 1: SECOND}
    assert list(usable(nvml(), monkeypatch, CUDA_VISIBLE_DEVICES=value).items()) == list(devices.items())


@pytest.mark.parametrize("ask", ["nvmlDeviceGetHandleByIndex", "nvmlDeviceGetMemoryInfo"])
@pytest.mark.parametrize("code", [15, 16])
def test_a_lost_device_is_named_and_the_others_stay(monkeypatch, ask, code):
    whole = getattr(nvml(), ask)

    def lost(index):
        if index == 0:
            raise NVMLError(code)
        return whole(index)

    module = nvml(**{ask: lost})
    first, second = read(module)["devices"]
    assert (first["index"], first["uuid"]) == (0, None)
    assert first["name"] in ("does not respond: GPU is lost", "does not respond: GPU requires reset")
    assert (second["index"], second["uuid"]) == (1, SECOND)
    assert usable(module, monkeypatch) == {1: SECOND}


def test_parts_of_a_device_are_devices(monkeypatch):
    """Shapes of nvidia-ml-py; by hand, MIG was not seen yet."""
    names = {"a": b"MIG-11111111-2222", "b": b"MIG-33333333-4444"}
    whole = nvml()

    def part(handle, number):
        if number > 1:
            raise NVMLError
        return "ab"[number]

    module = nvml(
        nvmlDeviceGetMigMode=lambda handle: [1 if handle == 0 else 0, 0],
        nvmlDeviceGetMaxMigDeviceCount=lambda handle: 7,
        nvmlDeviceGetMigDeviceHandleByIndex=part,
        nvmlDeviceGetUUID=lambda handle: names.get(handle) or whole.nvmlDeviceGetUUID(handle),
        nvmlDeviceGetUtilizationRates=not_supported,
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [],
    )
    assert usable(module, monkeypatch) == {0: "MIG-11111111-2222", 1: "MIG-33333333-4444", 2: SECOND}
    assert [found["uuid"] for found in read(module)["devices"]] == ["MIG-11111111-2222", "MIG-33333333-4444", SECOND]
    assert usable(module, monkeypatch, CUDA_VISIBLE_DEVICES="MIG-3333") == {1: "MIG-33333333-4444"}


def test_a_machine_without_a_driver_has_no_devices_and_no_error():
    def fail():
        raise OSError("libnvidia-ml.so.1: cannot open shared object file")

    reader = DeviceReader({"cuda": NvmlReader(fail), "rocm": AmdSmiReader(fail)})
    assert asyncio.run(reader.usable()) == {"cuda": {}, "rocm": {}}
    shown = asyncio.run(reader.read(lambda pid: None))
    assert shown["devices"] == shown["problems"] == []
    assert not shown["processes_hidden"]


def test_each_accelerator_has_its_reader_and_those_of_absent_vendors_say_nothing():
    sources = find_sources()
    assert {name: type(source) for name, source in sources.items()} == {
        "cuda": NvmlReader,
        "rocm": AmdSmiReader,
        "xpu": XpuSmiReader,
        "mps": MpsReader,
    }
    shown = asyncio.run(DeviceReader(sources).read(lambda pid: None))
    assert shown["problems"] == []


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


class AmdSmiException(Exception):
    pass


def amdsmi(**replaced):
    """What amdsmi answers on an MI300X and an MI210, by AMD's reference: memory in MiB, "N/A" for what a card lacks."""

    def refuse(handle):
        raise AmdSmiException

    functions = {
        "amdsmi_get_processor_handles": lambda: ["mi300x", "mi210"],
        "amdsmi_get_gpu_asic_info": lambda handle: {"market_name": f"AMD Instinct {handle.upper()}"},
        "amdsmi_get_gpu_device_uuid": lambda handle: "c4ff74a1-0000-1000-80f6-0c5b3e2a1f00",
        "amdsmi_get_gpu_vram_usage": lambda handle: {"vram_total": 196592, "vram_used": 283},
        "amdsmi_get_gpu_activity": lambda handle: {"gfx_activity": 42, "umc_activity": 3, "mm_activity": "N/A"},
        "amdsmi_get_temp_metric": lambda handle, kind, metric: {("hotspot", "current"): 51}[kind, metric],
        "amdsmi_get_power_info": lambda handle: {
            "current_socket_power": 143 if handle == "mi300x" else "N/A",
            "average_socket_power": "N/A" if handle == "mi300x" else 40,
            "power_limit": 750,
        },
        "amdsmi_get_gpu_process_list": lambda handle: [
            {"name": "python", "pid": MINE, "mem": 0, "memory_usage": {"gtt_mem": 0, "cpu_mem": 0, "vram_mem": GIB}}
        ],
        "AmdSmiException": AmdSmiException,
        "AmdSmiTemperatureType": SimpleNamespace(HOTSPOT="hotspot"),
        "AmdSmiTemperatureMetric": SimpleNamespace(CURRENT="current"),
    }
    return SimpleNamespace(refuse=refuse, **{**functions, **replaced})


def test_devices_of_amd():
    first, second = AmdSmiReader(amdsmi).read()
    assert first == {
        "index": 0,
        "name": "AMD Instinct MI300X",
        "uuid": "c4ff74a1-0000-1000-80f6-0c5b3e2a1f00",
        "memory_used_bytes": 283 << 20,
        "memory_total_bytes": 196592 << 20,
        "utilization_percent": 42,
        "temperature_celsius": 51,
        "power_watts": 143,
        "power_limit_watts": 750,
        "processes": [{"pid": MINE, "memory_bytes": GIB}],
    }
    assert (second["index"], second["power_watts"]) == (1, 40)
    assert AmdSmiReader(amdsmi).count() == 2


def test_what_a_device_of_amd_does_not_tell_is_null():
    refused = amdsmi()
    for name in ("amdsmi_get_power_info", "amdsmi_get_gpu_vram_usage", "amdsmi_get_gpu_process_list"):
        setattr(refused, name, refused.refuse)
    first = AmdSmiReader(lambda: refused).read()[0]
    unknown = {name for name, value in first.items() if value is None}
    assert unknown == {"memory_used_bytes", "memory_total_bytes", "power_watts", "power_limit_watts"}
    assert first["processes"] == []


# Cut down from the user guide of xpu-smi and from what it prints elsewhere. Memory used in MiB, of processes in kB.
XPU_SMI = {
    "discovery": {"device_list": [{"device_id": 0, "device_name": "Intel(R) Data Center GPU Max 1100"}]},
    "discovery -d 0": {
        "device_name": "Intel(R) Data Center GPU Max 1100",
        "memory_physical_size_byte": "51522830336",
        "uuid": "00000000-0000-0029-0000-002f0bda8086",
    },
    "stats -d 0": {
        "device_id": 0,
        "device_level": [
            {"metrics_type": "XPUM_STATS_GPU_UTILIZATION", "value": 12.5},
            {"metrics_type": "XPUM_STATS_POWER", "value": 128.31},
            {"metrics_type": "XPUM_STATS_GPU_CORE_TEMPERATURE", "value": 38.0},
            {"metrics_type": "XPUM_STATS_MEMORY_USED", "value": 1024.0},
        ],
    },
    "ps": {
        "device_util_by_proc_list": [
            {"device_id": 0, "mem_size": 5726404, "process_id": MINE, "process_name": "python", "shared_mem_size": 0},
            {"device_id": 0, "mem_size": 1507, "process_id": THEIRS, "process_name": "xpu-smi", "shared_mem_size": 0},
        ]
    },
}


def xpu_smi(answers):
    return lambda command: json.dumps(answers[" ".join(command[1:-1])])


def test_devices_of_intel():
    assert XpuSmiReader(xpu_smi(XPU_SMI)).read() == [
        {
            "index": 0,
            "name": "Intel(R) Data Center GPU Max 1100",
            "uuid": "00000000-0000-0029-0000-002f0bda8086",
            "memory_used_bytes": GIB,
            "memory_total_bytes": 51522830336,
            "utilization_percent": 12.5,
            "temperature_celsius": 38.0,
            "power_watts": 128.31,
            "power_limit_watts": None,
            "processes": [{"pid": MINE, "memory_bytes": 5726404000}],
        }
    ]


def test_a_driver_of_intel_that_fails_is_named():
    failing = {"discovery": {"error": "Level Zero Initialization Error", "errno": 3}}
    shown = asyncio.run(DeviceReader({"xpu": XpuSmiReader(xpu_smi(failing))}).read(lambda pid: None))
    (problem,) = shown["problems"]
    assert problem.startswith("The XPU devices cannot be read")
    assert "Level Zero Initialization Error" in problem


def test_the_gpu_of_a_mac():
    entry = {
        "model": "Apple M4",
        "IOClass": "AGXAcceleratorG16G",
        "PerformanceStatistics": {
            "In use system memory (driver)": 0,
            "Alloc system memory": 1574862848,
            "Device Utilization %": 21,
            "In use system memory": 351141888,
        },
    }
    (found,) = MpsReader(lambda command: plistlib.dumps([entry]).decode()).read()
    assert (found["name"], found["memory_used_bytes"], found["utilization_percent"]) == ("Apple M4", 351141888, 21)
    assert MpsReader(lambda command: "").read() == []


class Hanging(DeviceSource):
    """A driver that does not answer before it is told to."""

    def __init__(self):
        self.answers = threading.Event()
        self.asked = 0

    def read(self):
        self.asked += 1
        self.answers.wait(60)
        return [device(0, name="late")]


def test_a_driver_that_hangs_is_named_and_holds_up_nothing_else():
    """Each reading has a limit; while one hangs, no other is begun, and devices of other vendors are shown."""
    hanging = Hanging()

    async def main():
        reader = DeviceReader({"cuda": hanging, "rocm": AmdSmiReader(amdsmi)}, owner_of_pid=owner, seconds=0.05)
        try:
            first = await reader.read(lambda pid: None)
            with pytest.raises(JupyterDistError) as raised:
                await reader.usable()
            assert (raised.value.code, hanging.asked) == ("timed_out", 1)
            assert await reader.usable("rocm") == {"rocm": {0: "0", 1: "1"}}
            return first
        finally:
            hanging.answers.set()

    shown = asyncio.run(main())
    assert [found["accelerator"] for found in shown["devices"]] == ["rocm", "rocm"]
    assert shown["problems"] == ["The CUDA devices cannot be read: the driver did not answer within 0.05 s."]


def test_a_driver_that_answers_again_is_read_again():
    hanging = Hanging()

    async def main():
        source = DeviceReader({"cuda": hanging}, seconds=0.05)
        with pytest.raises(JupyterDistError):
            await source.usable()
        hanging.answers.set()
        while True:  # until the thread of the first reading has ended
            try:
                return await source.usable()
            except JupyterDistError:
                await asyncio.sleep(0.01)

    assert asyncio.run(main()) == {"cuda": {0: "0"}}


class Slow(DeviceSource):
    """A driver that takes a while for each answer, within its limit."""

    def read(self):
        time.sleep(0.1)
        return [device(0, name="slow")]


def test_who_asks_while_a_driver_is_read_waits_for_its_turn():
    """Two groups that start together, and a page that shows the devices meanwhile: nobody is refused."""

    async def main():
        reader = DeviceReader({"cuda": Slow()}, seconds=60)
        return await asyncio.gather(reader.usable(), reader.read(lambda pid: None), reader.usable())

    first, shown, second = asyncio.run(main())
    assert first == second == {"cuda": {0: "0"}}
    assert shown["problems"] == []


def test_where_no_thread_can_be_started_the_reason_is_named(monkeypatch):
    """At the limit on processes; the error was a bare one of the server."""

    def full(self):
        raise RuntimeError("can't start new thread")

    async def main():
        reader = DeviceReader({"cuda": NvmlReader(nvml)})
        with monkeypatch.context() as limit:
            limit.setattr(threading.Thread, "start", full)
            with pytest.raises(JupyterDistError, match="can't start new thread"):
                await reader.usable()
        assert len((await reader.usable("cuda"))["cuda"]) == 2

    asyncio.run(main())
