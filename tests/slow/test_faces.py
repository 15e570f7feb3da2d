"""A slow cell, as the client, scripts, the command line and agents (MCP) report it while it runs and afterwards."""

from __future__ import annotations

import asyncio
import io
import json

import pytest

from jupyter_dist.client import AsyncClient, JupyterDistError
from jupyter_dist.client.displays.live import CellNews

SLOW = """import os, time
go = torch.ones(1)
while go.item():
    time.sleep(0.05 * rank)
    dist.all_reduce(torch.ones(1))
    go.fill_(0 if os.path.exists(stop) else 1)
    dist.broadcast(go, 0)
"""
MANY = 20_000
tools = pytest.importorskip("jupyter_dist.parts.mcp.tools")


def ask_as_an_agent(*acts):
    """Return the texts that an agent gets of tools."""

    async def ask():
        client = await AsyncClient.connect()
        try:
            return [await act(client, {"group": "from-shell"}, MANY) for act in acts]
        finally:
            await client.close()

    return asyncio.run(ask())


def test_a_slow_cell_is_reported_once_and_its_pace_and_verdict_are_kept(dist, group, tmp_path):
    stop = tmp_path / "stop"
    group.run(f"stop = {str(stop)!r}").raise_for_error()
    with pytest.raises(JupyterDistError, match="four seconds"):
        group.pace()
    execution = group.submit(SLOW)
    shown = io.StringIO()
    line = CellNews(shown)
    for state in execution.stream():
        line.update(state)
        if state.execution.get("slowness") and not stop.exists():
            pace = group.pace()
            running, _ = ask_as_an_agent(tools.say_verdict, tools.offered(read_only=True)["pace"].act)
            stop.touch()
    assert shown.getvalue().count("[slow]") == 1
    assert shown.getvalue().startswith("[slow] The others wait ")
    assert pace.causes[0].place.code == "time.sleep(0.05 * rank)"
    assert " Slow: The others wait " in running
    verdict, of_agent = ask_as_an_agent(tools.say_verdict, tools.offered(read_only=True)["pace"].act)
    text = dist("pace", "from-shell").stdout
    assert of_agent == text.rstrip("\n")
    assert "rank  compute  communicate  wait     for  input" in text
    assert "time.sleep(0.05 * rank)  (rank" in text
    assert "collectives each" in text

    verdicts = json.loads(dist("verdicts", "from-shell", "--json").stdout)
    assert verdicts == group.verdicts().model
    record = next(record for record in verdicts["verdicts"] if record["kind"] == "straggler")
    assert record["outcome"] != "open"  # the cell has ended
    assert record["witnesses"][0].startswith("Rank 1 came last to ")
    assert any(witness.startswith("rank 0: computes ") for witness in record["witnesses"])
    counts = f"{verdicts['shown']} shown, {verdicts['refuted']} refuted by what happened then"
    assert f"Verdicts on cells: {counts}." in verdict
    findings = json.loads(dist("doctor", "--json", status=int(verdicts["refuted"] > 0)).stdout)
    assert counts in {finding["text"] for finding in findings}
