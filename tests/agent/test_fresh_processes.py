"""Ranks that cannot be forked, because an import has started a thread: each is a new process that imports torch itself."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys

import pytest
from waits import PATIENCE, until_async

from jupyter_dist.agent.processes.starting.environment import rank_spec
from jupyter_dist.agent.processes.starting.fresh import FreshProcesses, _exited
from jupyter_dist.agent.processes.starting.process import RankDescriptors, open_descriptors
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.wire.specs import GroupSpec
from jupyter_dist.system.limits import within
from jupyter_dist.transport.frames import encode_frame

from .harness import AgentProcess


def test_where_forking_is_not_safe_ranks_are_fresh_processes_and_the_group_says_so(tmp_path):
    slow = tmp_path / "slow"
    (tmp_path / "starts_a_thread.py").write_text(
        "import os, threading, time\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        f"time.sleep(3 if os.path.exists({str(slow)!r}) else 0)\n"
    )
    env = {"JUPYTER_DIST_PRELOAD": '["starts_a_thread"]', "PYTHONPATH": str(tmp_path)}
    with AgentProcess(tmp_path / "g", env) as client:
        client.start(2, preload=["starts_a_thread"])
        client.wait(lambda: "fresh processes" in (client.group["note"] or ""))
        assert "1 thread" in client.group["note"]
        assert client.run("t = torch.ones(1); dist.all_reduce(t)")["state"] == "ok"

        # The import of a new process takes longer than the other rank waits in the process group.
        client.run("import jupyter_dist.rank.collectives.process_group as ours; ours.REJOIN_SECONDS = 1.0", [0])
        slow.touch()
        client.kill_rank(1, signal.SIGKILL)
        client.wait(lambda: client.group["state"] == "degraded")
        client.request("replace")
        client.wait(lambda: client.group["state"] not in ("degraded", "restarting"))
        assert client.group["state"] == "ready", client.group["note"]
        assert client.run("dist.all_reduce(torch.ones(1))")["state"] == "ok"
        slow.unlink()
        client.request("restart")
        client.wait(lambda: client.group["generation"] == 1 and client.group["state"] == "ready")
        assert client.run("t = torch.ones(1); dist.all_reduce(t)")["state"] == "ok"


async def begin(fresh, folder):
    """Start rank 0 of one. Its channel and pipes lead nowhere."""
    spec = rank_spec(GroupSpec("g-1", "g", 1, "cpu", "gloo", str(folder)), 0, "", 0, ("127.0.0.1", 1))
    with open_descriptors(lambda: RankDescriptors(*(os.open(os.devnull, os.O_RDWR) for _ in range(3)))) as fds:
        return await fresh.start(spec, fds)


SLOW = """#!{python}
import os, signal, socket, sys
channel = socket.socket(fileno=int(sys.argv[3]))
def born_at_last(*_):
    channel.sendall({born!r})
    os._exit(0)
signal.signal(signal.SIGTERM, born_at_last)
open({mark!r}, "w").close()
while True: signal.pause()
"""


async def test_a_fresh_process_that_nobody_waits_for_any_more_is_ended(tmp_path, monkeypatch):
    """It may hang before its first line, or be born while its start is given up."""
    slow, mark, ended = tmp_path / "slow", tmp_path / "mark", []
    born = encode_frame({"t": "born", "pid": 1 << 30, "started": 0})
    slow.write_text(SLOW.format(python=sys.executable, born=born, mark=str(mark)))
    slow.chmod(0o700)

    async def on_exit(*what):
        ended.append(what)

    monkeypatch.setattr(sys, "executable", str(slow))
    fresh = FreshProcesses([], on_exit)
    start = asyncio.create_task(begin(fresh, tmp_path))
    await until_async(mark.exists)
    start.cancel()
    await until_async(lambda: not fresh.children() and ended)
    await fresh.stop()


async def test_a_fresh_process_that_ends_before_it_has_read_its_task_fails_the_start(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    fresh = FreshProcesses(["more than the channel holds " * 100_000], lambda *_: None)
    with pytest.raises(JupyterDistError, match="its Python ended at once with code 1"):
        await within(PATIENCE, begin(fresh, tmp_path))
    await fresh.stop()


@pytest.fixture
def sleeper():
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


async def test_an_end_is_noticed_without_descriptors(sleeper):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        waiting = asyncio.create_task(_exited(sleeper.pid))
        await asyncio.sleep(0)
        assert not waiting.done()
        os.kill(sleeper.pid, signal.SIGKILL)
        await within(PATIENCE, waiting)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
