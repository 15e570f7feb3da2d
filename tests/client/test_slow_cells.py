"""A slow cell, as the client, scripts and the command line report it."""

from __future__ import annotations

import io

import pytest

from jupyter_dist.client import JupyterDistError
from jupyter_dist.client.displays.live import VerdictLine
from jupyter_dist.client.results.pacetext import pace_text

SLOW = """import os, time
go = torch.ones(1)
while go.item():
    time.sleep(0.05 * rank)
    dist.all_reduce(torch.ones(1))
    go.fill_(0 if os.path.exists(stop) else 1)
    dist.broadcast(go, 0)
"""


def test_a_slow_cell_says_so_once_and_its_pace_is_text(group, tmp_path):
    stop = tmp_path / "stop"
    group.run(f"stop = {str(stop)!r}").raise_for_error()
    with pytest.raises(JupyterDistError, match="four seconds"):
        group.pace()
    execution = group.submit(SLOW)
    shown = io.StringIO()
    line = VerdictLine(shown)
    for state in execution.stream():
        line.update(state)
        if state.execution.get("slowness"):
            pace = group.pace()
            stop.touch()
    assert shown.getvalue().count("[slow]") == 1
    assert shown.getvalue().startswith("[slow] Rank 1 is last to the collectives: ")
    assert pace.causes[0].place.code == "time.sleep(0.05 * rank)"
    text = pace_text(group.pace().model)
    assert "rank  compute  communicate  wait     for  input" in text
    assert "time.sleep(0.05 * rank)  (rank" in text
    assert "collectives each" in text
    verdicts = group.verdicts().verdicts
    assert "straggler" in {verdict.kind for verdict in verdicts}
    assert "open" not in {verdict.outcome for verdict in verdicts}  # the cell has ended
