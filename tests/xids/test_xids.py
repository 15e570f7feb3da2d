"""Errors that NVIDIA's driver reports: NVML answers as it did on an H100 (`facts:xid`, 26 Nov 2026); there is none here."""

import threading
from types import SimpleNamespace

import pytest

from jupyter_dist.parts.xids.watch import IS_LOST, MEANINGS, TIMEOUT, XID_EVENTS, XidWatch, listen

HANDLES = {0: 0x1000, 1: 0x2000}
UUIDS = {b"GPU-a": 0, b"GPU-b": 1}


class Nvml:
    """NVML with two devices, of which the first has no events if its name begins with MIG; it returns these events."""

    def __init__(self, *events, has_driver=True):
        self.events, self.has_driver, self.calls = list(events), has_driver, []

    def nvmlInit_v2(self):
        return 0 if self.has_driver else 9

    def nvmlShutdown(self):
        self.calls.append("shutdown")

    def nvmlEventSetCreate(self, events):
        events._obj.value = 0x77
        return 0

    def nvmlEventSetFree(self, events):
        self.calls.append(("free", events.value))

    def nvmlDeviceGetHandleByUUID(self, name, handle):
        if name not in UUIDS:
            return 6
        handle._obj.value = HANDLES[UUIDS[name]]
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle):
        if index.value not in HANDLES:
            return 2
        handle._obj.value = HANDLES[index.value]
        return 0

    def nvmlDeviceRegisterEvents(self, handle, kinds, events):
        assert (kinds.value, events.value) == (XID_EVENTS, 0x77)
        self.calls.append(("registered", handle.value))
        return 0

    def nvmlEventSetWait_v2(self, events, event, milliseconds):
        if not self.events:
            return 999
        found = self.events.pop(0)
        if isinstance(found, int):
            return found
        event._obj.device, event._obj.kind, event._obj.data = HANDLES[found[0]], XID_EVENTS, found[1]
        return 0


def received(nvml, devices):
    found = []
    listen(nvml, devices, lambda device, number: found.append((device, number)), threading.Event())
    return found


@pytest.mark.parametrize("devices", [{0: "GPU-a", 1: "GPU-b"}, {0: "", 1: ""}])
def test_each_xid_comes_with_its_device(devices):
    nvml = Nvml(TIMEOUT, (1, 43), TIMEOUT, (0, 31))
    assert received(nvml, devices) == [(1, 43), (0, 31)]
    assert nvml.calls[-2:] == [("free", 0x77), "shutdown"]


def test_only_devices_of_the_group_are_registered():
    nvml = Nvml((1, 43))
    assert received(nvml, {0: "GPU-a", 5: "MIG-c"}) == []
    assert [call for call in nvml.calls if call[0] == "registered"] == [("registered", HANDLES[0])]
    assert received(Nvml(has_driver=False), {0: ""}) == []
    assert received(Nvml((0, 43)), {7: ""}) == []


def test_a_device_that_is_lost_is_named_if_it_is_the_only_one():
    assert received(Nvml(IS_LOST), {1: "GPU-b"}) == [(1, 79)]
    assert received(Nvml(IS_LOST), {0: "", 1: ""}) == []


def watch_of(process_groups, devices):
    changes = []
    spec = SimpleNamespace(accelerator="cuda", devices=devices, device_names=[], is_on_nodes=False)
    ranks = [SimpleNamespace(rank=rank, process_group=state) for rank, state in enumerate(process_groups)]
    group = SimpleNamespace(spec=spec, ranks=ranks, status_changed=lambda: changes.append(1))
    return XidWatch(group), ranks, changes


def test_an_error_of_a_program_is_named_while_a_rank_of_that_device_has_lost_it():
    watch, ranks, changes = watch_of(["ok", "ok", "ok"], [0, 0, 1])
    watch.reported(0, 43)  # of any process there
    assert (watch.sentences(), changes) == ([], [])
    ranks[2].process_group = "lost"  # of the other device
    assert watch.sentences() == []
    ranks[1].process_group = "lost"
    (sentence,) = watch.sentences()
    assert sentence.startswith("The driver reported Xid 43 for device 0 (ranks 0-1) at ")
    assert sentence.endswith(": a program was stopped after an error of its own.")
    ranks[1].process_group = "ok"  # it was replaced
    assert watch.sentences() == []


def test_an_error_of_the_device_is_named_at_once_and_stays():
    watch, _, changes = watch_of(["ok"], [3])
    watch.reported(3, 79)
    watch.reported(3, 555)
    assert changes == [1, 1]
    assert [sentence.partition(": ")[2] for sentence in watch.sentences()] == [
        "it fell off the bus. The machine must be restarted.",
        "see NVIDIA's list of Xid errors.",
    ]


def test_the_documented_numbers_are_known():
    assert {13, 31, 43, 45, 48, 63, 64, 74, 79, 94, 95, 119} <= MEANINGS.keys()
