"""The save before the allocation ends: real ranks, and an end that the test sends as a server does."""

from __future__ import annotations

import os
import time

import pytest
from agent.harness import AgentProcess

from jupyter_dist.parts.saves.agent.beforeend import RESERVE_SECONDS, EndClock
from jupyter_dist.parts.saves.folder.layout import SavesFolder
from jupyter_dist.parts.saves.folder.record import read_record

BEFORE_SECONDS = 600.0
# Every signal is masked, and C code waits until the test opens the other end of the pipe.
DEAF = """
import signal
if rank == 1:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    print('in', flush=True)
    open(pipe).read()
"""
SLOW = """
import time
class Slow:
    def __reduce__(self):
        time.sleep(1000)
slow = Slow() if rank == 1 else None
"""


def test_a_group_is_saved_once_before_each_end_and_not_when_it_is_too_late():
    clock = EndClock(100.0)
    assert not clock.is_due(0.0), "no end is known"
    clock.ends_at = 1000.0
    assert not clock.is_due(899.0)
    assert clock.is_due(900.0)
    assert clock.deadline == 995.0
    assert not clock.is_due(995.0), "nothing could be written any more"
    clock.began()
    assert not clock.is_due(950.0)
    clock.ends_at = 1002.0
    assert not clock.is_due(950.0), "the engine rounds"
    clock.ends_at = 2000.0  # the limit was raised
    assert not clock.is_due(1000.0)
    assert clock.is_due(1950.0)
    clock.ends_at = 1500.0  # and lowered: it is preempted
    assert clock.is_due(1450.0)
    short = EndClock(10.0)
    short.ends_at = 100.0
    assert short.deadline == 99.0
    clock.began()
    clock.ends_in(30.0, 1470.0)
    assert clock.is_due(1470.0), "cells may have run since the save before the same end"
    never = EndClock(0.0)
    never.ends_at = 10.0
    assert not never.is_due(9.0)


@pytest.fixture
def ending(tmp_path):
    """A group that is saved 10 minutes before its end, if it learns of one."""
    process = AgentProcess(tmp_path / "g")
    with process as client:
        (tmp_path / "saves").mkdir(mode=0o700)
        saves = {"saves_folder": str(tmp_path / "saves"), "save_before_end_seconds": BEFORE_SECONDS}
        client.start(2, options={**saves, "saves_kept": 2})
        yield client, SavesFolder(tmp_path / "saves")


def note_of(client, beginning):
    client.wait(lambda: (client.group.get("note") or "").startswith(beginning))
    return client.group["note"]


def test_a_group_is_saved_before_its_end_each_time_or_the_note_names_what_was_not_written(ending, tmp_path):
    client, folder = ending
    assert client.group["self_saving"]["ends_at"] is None
    client.run(f"x = rank + 40; pipe = {str(tmp_path / 'pipe')!r}")
    os.mkfifo(tmp_path / "pipe")

    # A cell runs and another one waits: both end with the reason, and the variables are saved.
    end = time.time() + BEFORE_SECONDS - 1
    clock = time.strftime("%H:%M", time.localtime(end))
    running = client.submit("import time\nx += 1\ntime.sleep(1000)", [0, 1], notebook="n")
    waiting = client.submit("x = 'never'", [0, 1], notebook="m")
    client.wait(lambda: client.executions[running]["state"] == "running")
    assert client.request("ends", at=end)[0]["group"]["self_saving"]["ends_at"] == end
    assert client.ended(running)["state"] == "interrupted"
    why = f"the allocation ends at {clock}, and the group is saved before."
    assert f"Interrupted: {why}" in client.text(0, running, "stderr")
    assert client.ended(waiting)["state"] == "aborted"
    assert client.executions[waiting]["error"]["message"] == f"Not run: {why}"
    first = read_record(folder, note_of(client, "The group was saved as '").split("'")[1]).model
    assert (first["automatic"], first["world_size"]) == (True, 2)
    assert client.run("print(x)")["state"] == "ok", "it goes on until the end"

    # A cell that no interrupt reaches: nothing is saved, the note names it, and the former save is as it was.
    deaf = client.submit(DEAF, [0, 1])
    client.wait(lambda: client.text(1, deaf) == "in\n")
    client.request("ends", at=time.time() + BEFORE_SECONDS / 2)
    client.request("ends", at=time.time() + RESERVE_SECONDS + 1)  # it is preempted while the save waits
    note = note_of(client, "The group was not saved before its allocation ends at ")
    assert "'import signal' could not be interrupted on rank 1" in note, note
    (tmp_path / "pipe").open("w").close()
    client.ended(deaf)
    assert read_record(folder, first["name"]).model == first

    # A rank that needs longer than there is: it is named, and nothing is saved.
    client.run(SLOW)
    client.request("ends", at=time.time() + BEFORE_SECONDS / 2)
    client.request("ends", at=time.time() + RESERVE_SECONDS + 2)
    client.wait(lambda: "not complete in time" in (client.group.get("note") or ""))
    assert "rank 1 had done " in client.group["note"].lower(), client.group["note"]
    assert read_record(folder, first["name"]).model == first
    client.run("slow = None")

    # The limit was raised: it is saved before the next end, too, and that save has the variables.
    client.run("x = 'changed'")
    client.request("ends", at=time.time() + BEFORE_SECONDS - 1)
    second = note_of(client, "The group was saved as '").split("'")[1]
    client.run("x = None")
    client.transfer("restore", folder.path, name=second)
    assert client.text(1, client.run("print(x)")["id"]) == "changed\n"
