"""A slow cell on real ranks: its cause is shown while it runs, and where its time went afterwards."""

from __future__ import annotations

import pytest
from agent.harness import AgentProcess
from leaks import nothing_left

NUM_RANKS = 3
STRAGGLER = """import time
go = torch.ones(1)
while go.item():
    if rank == 1:
        time.sleep(0.05)
    tensor = torch.ones(8)
    dist.all_reduce(tensor)
    go.fill_(0 if rank == 0 and stop() else 1)
    dist.broadcast(go, 0)
"""


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    with nothing_left():
        process = AgentProcess(tmp_path_factory.mktemp("pace") / "g")
        client = process.client()
        client.start(NUM_RANKS)
        yield client
        process.__exit__()


def test_a_straggler_is_named_while_its_cell_runs_and_its_time_afterwards(group, tmp_path):
    stop = tmp_path / "stop"
    group.run(f"import os\ndef stop(): return os.path.exists({str(stop)!r})", range(NUM_RANKS))
    running = group.submit(STRAGGLER, range(NUM_RANKS))
    group.wait(lambda: group.executions.get(running, {}).get("slowness"))
    (cause,) = group.executions[running]["slowness"]
    assert (cause["kind"], cause["ranks"]) == ("straggler", "1")
    assert (cause["place"]["line"], cause["place"]["code"]) == (5, "time.sleep(0.05)")
    pace = group.request("pace", execution_id=running)[0]["pace"]
    assert pace["causes"] == [cause]
    stop.touch()
    ended = group.ended(running)
    assert "slowness" not in ended
    rows = {row["rank"]: row for row in ended["pace"]["ranks"]}
    assert rows.keys() == set(range(NUM_RANKS))
    assert rows[0]["waits_for"] == rows[2]["waits_for"] == 1
    assert rows[1]["wait"] < min(rows[0]["wait"], rows[2]["wait"])
    assert ended["pace"]["steps"]["collectives"] == 2
    assert any(line["ranks"] == "1" and line["line"]["line"] == 5 for line in ended["pace"]["lines"])
    assert group.request("pace", execution_id=running)[0]["pace"] is None


def test_a_short_cell_is_not_watched(group):
    assert "pace" not in group.ended(group.submit("1", range(NUM_RANKS)))
