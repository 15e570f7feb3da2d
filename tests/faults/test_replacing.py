"""A dead rank whose successor cannot be started: the others keep their variables, and the next attempt may succeed."""

from __future__ import annotations

import os
import resource
import signal
import time
from pathlib import Path

import pytest
from waits import until


def without_rank_1(client):
    client.start(2)
    assert client.run("kept = 42", [0])["state"] == "ok"
    client.kill_rank(1)
    client.wait_group("degraded")


def fail_to_replace(client, reason):
    header, _ = client.request("replace")
    assert header["group"]["state"] == "restarting"
    client.wait_group("ready", "degraded", "dead")
    assert client.group["state"] == "degraded", client.group["error"]
    assert reason in client.group["note"]
    assert client.group["note"].startswith("Rank 1 could not be replaced: A rank's process could not be started: ")
    first, second = client.group["ranks"]
    assert (first["state"], second["state"]) == ("idle", "dead")
    assert second["exit"]["reason"] == "could not be started"
    cell = client.submit("print(kept)", [0])
    assert client.ended(cell)["state"] == "ok"
    assert client.text(0, cell) == "42\n"


def replace(client):
    client.request("replace")
    client.wait_group("ready")
    cell = client.submit("t = torch.ones(1); dist.all_reduce(t); print(globals().get('kept'), t.item())", [0, 1])
    assert client.ended(cell)["state"] == "ok"
    assert (client.text(0, cell), client.text(1, cell)) == ("42 2.0\n", "None 2.0\n")


def test_there_may_be_no_more_processes(few_pids, make_agent):
    process = make_agent(forked=False)  # so that the zygote is there, too
    (few_pids / "cgroup.procs").write_text(str(process.process.pid))
    client = process.client()
    without_rank_1(client)
    (few_pids / "pids.max").write_text("1")
    fail_to_replace(client, "Resource temporarily unavailable")
    (few_pids / "pids.max").write_text("60")
    replace(client)


def test_there_are_no_descriptors(own):
    """Whichever of a rank's channel and pipes the agent cannot open, it keeps none of the others."""
    without_rank_1(own)
    agent = own.agent.process.pid
    limits = resource.prlimit(agent, resource.RLIMIT_NOFILE)
    for free in range(6):
        before = settled(agent)
        resource.prlimit(agent, resource.RLIMIT_NOFILE, (limit_that_leaves(free, before), limits[1]))
        fail_to_replace(own, "Too many open files")
        until(lambda before=before: settled(agent) == before, lambda: descriptors(agent))
    resource.prlimit(agent, resource.RLIMIT_NOFILE, limits)
    replace(own)


def test_the_zygote_has_no_descriptors(own):
    """It gets some of a rank's channel and pipes, or none, or cannot open its own; its other ranks are not affected."""
    without_rank_1(own)
    zygote = parent_of(parent_of(own.group["ranks"][0]["pid"]))
    limits = resource.prlimit(zygote, resource.RLIMIT_NOFILE)
    for free in range(5):
        before = settled(zygote)
        # Not below their number: poll() would fail.
        limit = max(limit_that_leaves(free, before), len(before))
        resource.prlimit(zygote, resource.RLIMIT_NOFILE, (limit, limits[1]))
        fail_to_replace(own, "Too many open files")
        until(lambda before=before: settled(zygote) == before, lambda: descriptors(zygote))
    resource.prlimit(zygote, resource.RLIMIT_NOFILE, limits)
    replace(own)


def descriptors(pid):
    return sorted(int(name) for name in os.listdir(f"/proc/{pid}/fd"))


def settled(pid):
    """The same for half a second: those of a rank that has just died are closed a little later."""
    seen = []
    while len(seen) < 10 or any(one != seen[-1] for one in seen[-10:]):
        seen.append(descriptors(pid))
        time.sleep(0.05)
    return seen[-1]


def limit_that_leaves(free, taken):
    """The limit below which this many numbers of descriptors are free."""
    return next(limit for limit in range(1 << 20) if limit - sum(fd < limit for fd in taken) == free)


def test_a_process_that_is_forked_too_late_is_no_second_rank(own):
    """The zygote does not answer for a while, as on a machine that swaps."""
    without_rank_1(own)
    zygote = parent_of(parent_of(own.group["ranks"][0]["pid"]))
    os.kill(zygote, signal.SIGSTOP)
    try:
        fail_to_replace(own, "does not answer")
    finally:
        os.kill(zygote, signal.SIGCONT)
    replace(own)  # forked after the other
    shims = {parent_of(rank["pid"]) for rank in own.group["ranks"]}
    until(lambda: children(zygote) == shims, lambda: (children(zygote), shims))


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def children(pid):
    return {int(name) for name in filter(str.isdigit, os.listdir("/proc")) if is_child(int(name), pid)}


def is_child(pid, parent):
    try:
        return parent_of(pid) == parent
    except OSError:
        return False


@pytest.mark.part("undo")
def test_what_was_undone_for_a_replacement_that_fails_is_done_again(own):
    """Its process cannot be started, or the copies for it cannot be written; a cell that waits sees no undo."""
    own.start(2)
    own.run("seen, x = [], torch.zeros(2)", [0, 1], keep_undo=True)
    own.run("seen.append(1); x += 1\nif rank == 1: import os; os._exit(9)", [0, 1], keep_undo=True)
    own.wait_group("degraded")
    agent = own.agent.process.pid
    limits = resource.prlimit(agent, resource.RLIMIT_NOFILE)
    copies = own.agent.directory / ".jupyter-dist-copies-g-test-replaced"

    def no_files(is_on):
        limit = limit_that_leaves(0, settled(agent)) if is_on else limits[0]
        resource.prlimit(agent, resource.RLIMIT_NOFILE, (limit, limits[1]))

    def no_copies(is_on):
        copies.touch() if is_on else copies.unlink()

    for fault, reason in ((no_files, "Too many open files"), (no_copies, "Not a directory")):
        fault(True)
        header, _ = own.request("replace", wanted={"state": "undo", "others": "copy"})
        assert header["group"]["state"] == "restarting"
        queued = own.submit("print(seen, x.tolist())", [0], silent=True)
        own.wait_group("ready", "degraded", "dead")
        fault(False)
        assert own.group["state"] == "degraded"
        own.ended(queued)
        note = [content.decode() for header, content in own.records if header["kind"] == "note"][-1]
        assert note.startswith("Rank 1 could not be replaced: ")
        assert reason in note
        assert note.endswith("The other ranks are as they were.")
        assert own.text(0, queued) == "[1] [1.0, 1.0]\n"
        assert [len(own.request("undoable")[0][name]) for name in ("cells", "undone", "lost")] == [0, 0, 1]
    own.request("replace", wanted={"state": "undo", "others": "copy"})
    own.wait_group("ready")
    cell = own.run("dist.all_reduce(x); print(seen, x.tolist())", [0, 1])
    assert [own.text(rank, cell["id"]) for rank in (0, 1)] == ["[] [0.0, 0.0]\n"] * 2


@pytest.mark.part("saves")
def test_a_note_on_what_a_new_rank_lacks_ends_with_a_restore(own, tmp_path):
    own.start(3)
    own.run("x = rank", range(3))
    assert own.transfer("save", tmp_path / "saves", range(3))["state"] == "ok"
    own.kill_rank(2)
    own.wait_group("degraded")
    own.request("replace", wanted={"state": "copy"})
    own.wait_group("ready")
    note = own.group["note"]
    assert "x differs between the other ranks" in note
    own.run("pass", range(3))
    assert own.group["note"] == note
    assert own.transfer("restore", tmp_path / "saves", range(3))["state"] == "ok"
    own.wait(lambda: own.group["note"] is None)
