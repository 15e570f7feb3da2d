"""Listens for the errors that the driver of NVIDIA's devices reports (Xid), and names them in the group's note.

NVML reports an Xid within 0.1 s of the error, with its device and without a process (docs/gpu.md): it concerns all
ranks of that device. The meanings are taken from the catalog of NVIDIA:
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.protocol import accelerators
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.system.devices import LIBRARY

XID_EVENTS = 8  # nvmlEventTypeXidCriticalError
WAIT_MILLISECONDS = 1000
TIMEOUT, IS_LOST = 10, 15  # of nvmlReturn_t
OFF_THE_BUS = 79
SOON_SECONDS = 15.0  # a rank reports the loss of its device within this time


class Xid(NamedTuple):
    """The meaning of a number."""

    means: str
    of_program: bool = False  # one program has failed; the device is whole


MEANINGS = {
    13: Xid("a program used an address or an instruction that is not allowed", of_program=True),
    31: Xid("a program used memory that is not its own", of_program=True),
    32: Xid("a program's commands arrived damaged at the device", of_program=True),
    43: Xid("a program was stopped after an error of its own", of_program=True),
    45: Xid("a program was removed from the device after an error, or because it was killed", of_program=True),
    48: Xid("an ECC error that cannot be corrected. The device must be reset"),
    62: Xid("its internal controller has stopped. The device must be reset"),
    63: Xid("a row of its memory is replaced at the next reset"),
    64: Xid("a row of its memory could not be replaced. The device must be reset"),
    74: Xid("an error of NVLink. Collectives may fail; ask who runs the machine"),
    OFF_THE_BUS: Xid("it fell off the bus. The machine must be restarted"),
    94: Xid("an ECC error in the memory of one program, which must be started again", of_program=True),
    95: Xid("an ECC error that concerns all programs. The device must be reset"),
    109: Xid("a program did not leave the device in time", of_program=True),  # the device went on: seen on an H100
    119: Xid("its system processor (GSP) does not answer. The device must be reset"),
    120: Xid("an error of its system processor (GSP). The device must be reset"),
}
_UNKNOWN = Xid("see NVIDIA's list of Xid errors")


class _Seen(NamedTuple):
    """When an Xid was reported."""

    at: float  # by the wall clock, which is shown
    since: float  # by the monotonic clock

    def is_new(self) -> bool:
        return time.monotonic() - self.since < SOON_SECONDS


OnXid = Callable[[int, int], None]  # the device's index, and the number


class _XidEvent(ctypes.Structure):
    """nvmlEventData_t."""

    _fields_ = (
        ("device", ctypes.c_void_p),
        ("kind", ctypes.c_ulonglong),
        ("data", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


def listen(nvml: Any, devices: Mapping[int, str], on_xid: OnXid, over: threading.Event) -> None:
    """Call back for each Xid of these devices until it is over, which is noticed within a second.

    Args:
        nvml: NVIDIA's library.
        devices: the names of devices (UUIDs) by index; an empty name where it is not known.
        on_xid: called with the device's index and the number.
        over: set when the events are not needed any more.
    """
    if nvml.nvmlInit_v2() != 0:
        return
    events = ctypes.c_void_p()
    try:
        if nvml.nvmlEventSetCreate(ctypes.byref(events)) != 0:
            return
        registered = _register(nvml, devices, events)
        while registered and not over.is_set():
            event = _XidEvent()
            code = nvml.nvmlEventSetWait_v2(events, ctypes.byref(event), ctypes.c_uint(WAIT_MILLISECONDS))
            if code == 0 and event.kind == XID_EVENTS and event.device in registered:
                on_xid(registered[event.device], event.data)
            elif code == IS_LOST:  # the event does not name the device
                for index in registered.values() if len(registered) == 1 else ():
                    on_xid(index, OFF_THE_BUS)
                return
            elif code not in (0, TIMEOUT):
                return
    finally:
        if events.value is not None:
            nvml.nvmlEventSetFree(events)
        nvml.nvmlShutdown()


def _register(nvml: Any, devices: Mapping[int, str], events: ctypes.c_void_p) -> dict[int, int]:
    """Ask for the events of devices; return the index of each by its handle, if it has events."""
    found = {}
    for index, name in devices.items():
        handle = ctypes.c_void_p()
        if name:
            code = nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle))
        else:
            code = nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle))
        kinds = ctypes.c_ulonglong(XID_EVENTS)
        if code == 0 and handle.value and nvml.nvmlDeviceRegisterEvents(handle, kinds, events) == 0:
            found[handle.value] = index
    return found


class XidWatch:
    """Listens for the devices of a group on this machine, from `start` until `stop`."""

    def __init__(self, group: AgentGroup, load: Callable[[], Any] = lambda: ctypes.CDLL(LIBRARY)) -> None:
        self._group = group
        self._load = load
        self._over = threading.Event()
        self._reported: dict[tuple[int, int], _Seen] = {}  # by device and number

    def start(self) -> None:
        """Start listening, if these devices have such events; ranks of other machines are left out."""
        spec = self._group.spec
        if spec.accelerator == accelerators.OF_NVML and spec.devices and not spec.is_on_nodes:
            self._group.device_reports = self.sentences
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._listen, args=(loop,), name="device errors", daemon=True).start()

    def stop(self) -> None:
        """Stop listening. Idempotent."""
        self._over.set()

    def sentences(self) -> list[str]:
        """Return a sentence for each report that still counts: on programs, while a rank of the device has lost it."""
        return [
            _sentence(*key, seen.at, self._ranks_on(key[0]))
            for key, seen in self._reported.items()
            if self._counts(key)
        ]

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        def on_xid(device: int, number: int) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self.reported, device, number)

        spec = self._group.spec
        names = spec.device_names if len(spec.device_names) == len(spec.devices) else [""] * len(spec.devices)
        with contextlib.suppress(OSError, AttributeError):  # no driver, or one without these events
            listen(self._load(), dict(zip(spec.devices, names, strict=True)), on_xid, self._over)

    def reported(self, device: int, number: int) -> None:
        """Handle an Xid: show it now if it counts, or once a rank reports that it has lost the device."""
        kept = {key: seen for key, seen in self._reported.items() if self._counts(key) or seen.is_new()}
        self._reported = {**kept, (device, number): _Seen(time.time(), time.monotonic())}
        if self._counts((device, number)):
            self._group.status_changed()

    def _counts(self, key: tuple[int, int]) -> bool:
        device, number = key
        lost = any(rank.process_group == "lost" for rank in self._ranks_on(device))
        return lost if MEANINGS.get(number, _UNKNOWN).of_program else True

    def _ranks_on(self, device: int) -> list[Any]:
        return [rank for rank, of in zip(self._group.ranks, self._group.spec.devices, strict=False) if of == device]


def _sentence(device: int, number: int, when: float, ranks: Sequence[Any]) -> str:
    numbers = RankSet(rank.rank for rank in ranks)
    who = f"rank{'s' if len(numbers) > 1 else ''} {numbers}"
    at = time.strftime("%H:%M:%S", time.localtime(when))
    means = MEANINGS.get(number, _UNKNOWN).means
    return f"The driver reported Xid {number} for device {device} ({who}) at {at}: {means}."
