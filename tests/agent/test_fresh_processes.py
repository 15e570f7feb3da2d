"""Ranks that cannot be forked, because an import has started a thread: each is a new process that imports torch itself."""

from __future__ import annotations

import signal

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
