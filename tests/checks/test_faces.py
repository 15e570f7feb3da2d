"""A cell whose training is wrong, as the client, scripts, the command line and agents (MCP) report it."""

from __future__ import annotations

import asyncio
import io
import json

import pytest

from checks import kinds
from jupyter_dist.client import AsyncClient
from jupyter_dist.client.displays.live import CellNews
from jupyter_dist.protocol.errors import JupyterDistError

(WRONG,) = (kind for kind in kinds.WRONG if kind.name == "a loader without a sampler")
SAYS = "Ranks 0-1 got the same batch in steps "
MANY = 20_000
tools = pytest.importorskip("jupyter_dist.parts.mcp.tools")
TRAINS = """
torch.manual_seed(rank)
model.module.register_buffer("mean", torch.zeros(2))
adam = optim.Adam(model.parameters(), lr=0.001)
loader = DataLoader(data, sampler=DistributedSampler(data))
model(X[:8]).sum().backward()
adam.step()
"""
DIFFERS = """
with torch.no_grad():
    model.module[2].bias += 1
    model.module.mean += 1
    adam.state[model.module[2].bias]["exp_avg"] += 1
adam.param_groups[0]["lr"] = 0.5
loader.sampler.set_epoch(3)
"""


def asked_by_an_agent(**arguments):
    """What an agent gets of the tool `checks`."""

    async def ask():
        client = await AsyncClient.connect()
        try:
            return await tools.offered(read_only=True)["checks"].act(client, {"group": "from-shell", **arguments}, MANY)
        finally:
            await client.close()

    return asyncio.run(ask())


def test_a_wrong_cell_is_reported_while_it_runs_and_its_checks_are_kept(dist, group):
    group.run(kinds.FIRST).raise_for_error()
    execution, shown = group.submit(WRONG.code), io.StringIO()
    line = CellNews(shown)
    for state in execution.stream():
        line.update(state)
    assert shown.getvalue().startswith(f"[wrong] {SAYS}")
    assert shown.getvalue().count("[wrong]") == 1

    (check,) = group.checks().checks
    assert (check.kind, str(check.ranks), check.line.code) == ("same_batch", "0-1", "loss_of(model(x), y).backward()")
    assert check.message.startswith(SAYS)
    assert len(check.evidence) == 2
    digests = [sentence.partition("digest ")[2] for sentence in check.evidence]
    assert digests[0] == digests[1] != ""

    text = dist("checks", "from-shell").stdout
    assert text.startswith(SAYS)
    assert f"  {check.evidence[1]}\n" in text
    assert f"  To do: {check.advice}" in text
    assert json.loads(dist("checks", "from-shell", "--json").stdout) == group.checks().model
    assert asked_by_an_agent() == text.rstrip("\n")


def test_what_differs_in_a_model_and_what_trains_it_is_the_same_in_the_client_and_in_a_terminal(dist, group):
    group.run(kinds.FIRST + TRAINS).raise_for_error()
    group.run(DIFFERS, ranks="1").raise_for_error()
    found = group.check("model")
    differ = {one.path: (one.what, one.different) for one in found.differences if not one.path.startswith("random.")}
    state = next(path for path in differ if path.startswith("adam.state"))
    assert differ == {
        "model.module.2.bias": ("values", 1),
        "model.module.mean": ("values", 2),
        "adam.param_groups.0.lr": ("value", 0),
        state: ("values", 1),
        "loader.epoch": ("value", 0),
    }
    (rate,) = (one for one in found.differences if one.path.endswith(".lr"))
    assert (rate.ranks, rate.found, rate.reference, rate.expected) == ("1", "0.5", "0", "0.001")
    text = dist("check", "-g", "from-shell", "model").stdout
    assert "model.module.2.bias" in text
    assert "by at most 1" in text
    assert text == f"{found!r}\n"


def test_what_is_no_model_is_not_compared_as_one(dist, group):
    group.run("number = 1").raise_for_error()
    for name, words in (("nothing", "No rank has a variable 'nothing'."), ("number", "is no torch.nn.Module")):
        with pytest.raises(JupyterDistError, match=words):
            group.check(name)


def test_checks_are_switched_off_and_on(dist, group):
    assert group.set_checks(False).on is False
    group.run(kinds.FIRST + WRONG.code).raise_for_error()
    assert dist("checks", "from-shell").stdout == "Checks are off in this group.\n"
    assert group.set_checks(True).on is True
