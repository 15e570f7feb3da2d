"""The script that each node of a job runs: its files are written, whatever signals the engine sends and how often."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from waits import until

from jupyter_dist.server.launchers.nodefiles import NodeFiles

COMMAND = "trap 'trap : TERM; echo asked; exit 3' TERM; echo ready; while :; do sleep 0.05; done"


@pytest.mark.parametrize("round_", range(5))
def test_an_engine_that_asks_again_and_again_gets_the_exit_code_of_the_command(tmp_path: Path, round_: int) -> None:
    files = NodeFiles.create(tmp_path / "job", [])
    script = subprocess.Popen(
        files.command(["/bin/sh", "-c", COMMAND], []),
        env={**os.environ, "JUPYTER_DIST_NODE_HOST": "n1", "JUPYTER_DIST_NODE_RANK": "0"},
        start_new_session=True,
    )
    until(lambda: (files.read(), "ready" in files.log(0, 100))[1])
    time.sleep(round_ / 20)
    while script.poll() is None:
        os.killpg(script.pid, signal.SIGTERM)
        time.sleep(0.0005)
    files.read()
    (end,) = files.new_ends()
    assert script.returncode == 3
    assert (end.node, end.host, end.code) == (0, "n1", 3)
