"""A cell whose training is wrong, as the client, scripts, the command line and agents (MCP) report it."""

from __future__ import annotations

import asyncio
import io
import json

from checks import kinds

from jupyter_dist.client import AsyncClient
from jupyter_dist.client.displays.live import CellNews
from jupyter_dist.parts.mcp import tools

(WRONG,) = (kind for kind in kinds.WRONG if kind.name == "a loader without a sampler")
SAYS = "Ranks 0-1 got the same batch in steps "
MANY = 20_000


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


def test_what_differs_in_a_model_is_the_same_in_the_client_and_in_a_terminal(dist, group):
    group.run(kinds.FIRST).raise_for_error()
    group.run("model.module[2].bias.data += 1", ranks="1").raise_for_error()
    found = group.check("model")
    (difference,) = (one for one in found.differences if one.what != "random")
    assert (difference.name, [value.partition(":")[0] for value in difference.values]) == (
        "module.2.bias",
        ["rank 0", "rank 1"],
    )
    text = dist("check", "-g", "from-shell", "model").stdout
    assert f"\nparameter module.2.bias\n  {difference.values[0]}\n" in text


def test_checks_are_switched_off_and_on(dist, group):
    assert group.set_checks(False).on is False
    group.run(kinds.FIRST + WRONG.code).raise_for_error()
    assert dist("checks", "from-shell").stdout == "Checks are off in this group.\n"
    assert group.set_checks(True).on is True
