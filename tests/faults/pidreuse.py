"""Threat 18, run as process 1's child of a small pid namespace: the numbers of dead processes come back as strangers'.

`unshare --pid --fork --mount-proc python tests/faults/pidreuse.py FOLDER`, as root.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from agent.harness import AgentProcess  # noqa: E402
from waits import PATIENCE  # noqa: E402

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


def stranger(pid: int) -> subprocess.Popen[bytes]:
    """A process of nobody we know, with this number, in a session and process group of this number."""
    for _ in range(200):
        LAST_PID.write_text(str(pid - 1))
        process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        if process.pid == pid:
            return process
        process.kill()
        process.wait(PATIENCE)
    sys.exit(f"number {pid} did not come back")


def main(folder: Path) -> None:
    process = AgentProcess(folder / "g", forked=False)
    client = process.client()
    client.start(2)
    client.run("kept = 1")
    dead = client.group["ranks"][1]["pid"]
    client.kill_rank(1)
    client.wait_group("degraded")
    others = [stranger(dead)]
    client.request("interrupt", ranks=[0, 1])
    client.request("kill", rank=1)
    client.request("replace")
    client.wait_group("ready")
    dead = client.group["ranks"][0]["pid"]
    client.kill_rank(0)
    client.wait_group("degraded")
    others.append(stranger(dead))
    client.request("restart")
    client.wait(lambda: client.group["generation"] == 1 and client.group["state"] == "ready")
    assert client.run("dist.barrier()")["state"] == "ok"
    ranks = [rank["pid"] for rank in client.group["ranks"]]
    for pid in ranks:
        os.kill(pid, signal.SIGKILL)
    client.wait_group("dead")
    others += [stranger(pid) for pid in ranks]
    client.request("shutdown")
    process.process.wait(PATIENCE)
    time.sleep(0.2)
    assert [other.poll() for other in others] == [None] * 4, [other.poll() for other in others]
    for other in others:
        other.kill()
        other.wait(PATIENCE)
    process.__exit__()
    print(f"{len(others)} strangers with the numbers of dead ranks were left alone")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
