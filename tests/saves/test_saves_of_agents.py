"""Saves and restores as an agent has them: killed in one, and what a restore makes good."""

import os
import signal
import uuid

import pytest
from agent.harness import AgentProcess
from leaks import nothing_left
from waits import PATIENCE, until

from jupyter_dist.parts.saves.folder.layout import SavesFolder
from jupyter_dist.parts.saves.folder.record import names, read_record
from jupyter_dist.parts.saves.folder.removal import sweep
from jupyter_dist.parts.saves.transfer import TransferSpec
from jupyter_dist.protocol.wire.specs import ExecutionSpec

SLOW = "x = 2\nclass Slow:\n    def __reduce__(self):\n        import time; time.sleep(1000)\nif rank: slow = Slow()"


def test_an_agent_that_is_killed_in_a_save_leaves_the_former_one_and_nothing_that_is_not_removed(tmp_path):
    folder = SavesFolder(tmp_path / "saves")
    process = AgentProcess(tmp_path / "g")
    client = process.client()
    client.start(2)
    client.run("x = torch.rand(1 << 16)")
    assert client.transfer("save", folder.path)["state"] == "ok"
    good = read_record(folder, "x")
    client.run(SLOW)
    wanted = TransferSpec("save", str(folder.path), "x", timeout_seconds=PATIENCE)
    spec = ExecutionSpec(f"e-{uuid.uuid4().hex[:8]}", [0, 1], silent=True).to_dict()
    client.request("transfer", b"# save", execution={**spec, "transfer": wanted.to_dict()})
    client.wait(lambda: client.group["ranks"][1]["state"] == "busy")
    until(lambda: len(list(folder.content("x", "any").parent.iterdir())) == 3)
    os.kill(process.process.pid, signal.SIGKILL)
    client.wait_closed()
    until(lambda: not process._left())
    client.close()
    process.process.wait(PATIENCE)
    assert read_record(folder, "x") == good
    assert sweep(folder) is not None, "the lock went with the agent"
    assert sorted(path.name for path in folder.record("x").parent.iterdir()) == sorted([good.model["id"], "save.json"])
    assert names(folder) == ["x"]


@pytest.mark.part("resizing")
def test_a_note_on_what_a_resize_left_out_ends_with_a_restore(tmp_path):
    with nothing_left(), AgentProcess(tmp_path / "g") as own:
        own.start(2)
        own.run("class Here:\n    def __reduce__(self): return open, ('/dev/null/nowhere',)\nx, y = Here(), 1")
        own.request("resize", num_ranks=3)
        own.wait(lambda: own.group["spec"]["world_size"] == 3 and own.group["state"] == "ready")
        note = own.group["note"]
        assert "ranks. x" in note
        own.run("pass", range(3))
        assert own.group["note"] == note
        own.run("x = 2", range(3))
        for action in ("save", "restore"):
            assert own.transfer(action, tmp_path / "saves", range(3))["state"] == "ok"
        own.wait(lambda: own.group["note"] is None)
