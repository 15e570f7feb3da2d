"""A slow cell over two machines whose clocks differ: the second node is in a time namespace, as after another boot."""

from __future__ import annotations

import subprocess

import pytest
from waits import PATIENCE

from .twonodes import TwoNodes

AHEAD_SECONDS = 5000
OTHER_CLOCK = ("unshare", "--time", "--monotonic", str(AHEAD_SECONDS))
STRAGGLER = """import time
go = torch.ones(1)
while go.item():
    if rank == 1:
        time.sleep(0.05)
    dist.all_reduce(torch.ones(8))
    go.fill_(0 if rank == 0 and stop() else 1)
    dist.broadcast(go, 0)
"""


@pytest.fixture
def nodes(tmp_path):
    try:
        subprocess.run([*OTHER_CLOCK, "true"], check=True, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.CalledProcessError) as err:
        pytest.skip(f"time namespaces cannot be made here: {getattr(err, 'stderr', '') or err}")
    nodes = TwoNodes(tmp_path / "g")
    nodes.begin(num_ranks=2)
    nodes.join("--node-rank", "0")
    nodes.join("--node-rank", "1", prefix=OTHER_CLOCK)
    nodes.ready()
    yield nodes
    nodes.end()


@pytest.mark.part("slow")
def test_a_straggler_on_another_machine_is_named_although_its_clock_differs(nodes, tmp_path):
    client, both, stop = nodes.client, range(2), tmp_path / "stop"
    execution = client.run(
        f"import os, time\nprint(time.monotonic())\ndef stop(): return os.path.exists({str(stop)!r})", both
    )
    first, second = (float(client.text(rank, execution["id"])) for rank in both)
    assert second - first > AHEAD_SECONDS - PATIENCE
    running = client.submit(STRAGGLER, both)
    client.wait(lambda: client.executions.get(running, {}).get("slowness"))
    (cause,) = client.executions[running]["slowness"]
    stop.touch()
    ended = client.ended(running)
    assert (cause["kind"], cause["ranks"], cause["place"]["code"]) == ("straggler", "1", "time.sleep(0.05)")
    rows = {row["rank"]: row for row in ended["pace"]["ranks"]}
    assert rows[0]["waits_for"] == 1
    assert rows[1]["wait"] < rows[0]["wait"]
