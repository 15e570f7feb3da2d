"""When a group may be parked: room for its memory, and the time without use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jupyter_dist.parts.parking.agent.driver import DriverCheckpoint, why_not_for
from jupyter_dist.parts.parking.agent.idle import IdleClock
from jupyter_dist.parts.parking.agent.room import GIB, Need, check_folder, check_hosts
from jupyter_dist.parts.parking.server import sharing_note
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.wire.specs import GroupSpec
from jupyter_dist.system.memory import available_bytes


def test_ranks_of_one_machine_need_room_together():
    check_hosts([Need(None, 20 * GIB, 50 * GIB), Need(None, 20 * GIB, 50 * GIB)])
    with pytest.raises(JupyterDistError, match=r"hold 60.0 GiB on devices, and this machine has 50.0 GiB"):
        check_hosts([Need(None, 20 * GIB, 50 * GIB)] * 3)
    with pytest.raises(JupyterDistError, match=r"and node 1 has 8.0 GiB"):
        check_hosts([Need(0, 20 * GIB, 50 * GIB), Need(1, 20 * GIB, 8 * GIB)])
    check_hosts([Need(None, 20 * GIB, None)])  # not known


def test_files_need_a_disk_with_space(tmp_path):
    check_folder(tmp_path, 1)
    with pytest.raises(JupyterDistError, match="GiB free"):
        check_folder(tmp_path, 1 << 60)
    with pytest.raises(JupyterDistError, match="in memory"):
        check_folder(Path("/dev/shm"), 1)
    with pytest.raises(JupyterDistError, match="No such file"):
        check_folder(tmp_path / "none", 1)


def test_the_machine_has_memory_available():
    assert (available_bytes() or 0) > 0


def test_a_notice_comes_before_the_group_is_parked():
    clock = IdleClock(600.0)
    assert clock.due(0.0) is None
    assert clock.due(539.0) is None
    assert clock.due(541.0) == "notice"
    assert clock.due(542.0) is None
    clock.used(550.0)
    assert clock.due(601.0) is None
    assert clock.due(1100.0) == "notice"
    assert clock.due(1151.0) == "park"
    assert clock.due(1152.0) is None  # it could not be parked: later again


def test_a_clock_that_was_held_up_gives_notice_all_the_same():
    clock = IdleClock(600.0)
    clock.used(0.0)
    assert clock.due(10_000.0) == "notice"
    assert clock.due(10_001.0) == "park"


def test_without_a_limit_a_group_is_never_parked_by_itself():
    assert IdleClock(0.0).due(1e9) is None


PROGRAMS = {
    "import time; time.sleep(1000)": "did not end 'park' within",
    "import sys; sys.exit(3)": "ended with 3",
    'print(\'{"step": "lock", "pid": 7, "outcome": "CUDA_ERROR_NOT_READY"}\')': "'lock' of process 7 failed: CUDA_ERR",
}


@pytest.mark.parametrize("code", PROGRAMS)
async def test_each_way_in_which_the_driver_fails_is_named(code, tmp_path, monkeypatch):
    monkeypatch.setattr("jupyter_dist.parts.parking.agent.driver.LEAST_SECONDS", 2.0)
    program = tmp_path / "program.py"
    program.write_text(code)
    driver = DriverCheckpoint(str(program))
    with pytest.raises(JupyterDistError, match=PROGRAMS[code]):
        await driver.park([7], 0)
    assert driver.children == set()


GROUP = {"group_id": "g", "name": "g", "world_size": 2, "accelerator": "cuda", "backend": "nccl", "cwd": "/"}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"world_size": 1, "devices": [0]}, None),
        ({"devices": [0, 0]}, "several ranks"),
        ({"devices": [0, 1]}, "several ranks"),
        ({"devices": [0], "ranks_per_node": [1, 1]}, "on several machines"),
        ({"accelerator": "cpu", "devices": []}, "no checkpoint of processes"),
    ],
)
def test_groups_that_the_driver_does_not_bring_back_whole_are_parked_without_it(fields, why):
    spec = GroupSpec(**{**GROUP, **fields})
    found = why_not_for(spec)
    assert found is None if why is None else why in found


async def test_a_machine_without_a_driver_says_so():
    if sys.platform != "linux":
        pytest.skip("of Linux")
    why = await DriverCheckpoint().why_not([1])
    assert why


def test_idle_groups_on_the_same_devices_are_named():
    def group(name, devices, **fields):
        idle = {"state": "ready", "running": [], "queued": [], "accelerator": "cuda", "launcher": "local"}
        return {"name": name, "devices": devices, **idle, **fields}

    wanted = {"devices": [0, 1], "launcher": "local", "accelerator": "cuda"}
    others = [group("b", [2]), group("c", [1], running=["e-1"]), group("d", [1], state="parked")]
    others += [group("e", [0], launcher="slurm"), group("f", [0], accelerator="xpu"), group("g", [], accelerator="cpu")]
    assert sharing_note(wanted, others) is None
    assert sharing_note(wanted, [*others, group("a", [1, 2])]) == (
        "A group is idle and holds devices of this one, too: 'a' (device 1). Park what you do not use: it keeps its "
        "variables."
    )
    both = sharing_note(wanted, [group("a", [0]), group("b", [0, 1])])
    assert both.startswith("Groups are idle and hold devices of this one, too: 'a' (device 0); 'b' (device 0, 1).")
