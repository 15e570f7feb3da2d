"""An agent that fails while a cell is undone: no rank stays undone alone, and the group takes cells."""

import contextlib
import uuid

import pytest
from extending.packages import agent_with_faults

from jupyter_dist.protocol.errors import JupyterDistError

UNDOING = "jupyter_dist.parts.undo.agent.undoing:CellUndo"


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    with agent_with_faults(tmp_path_factory.mktemp("undo"), 3) as client:
        yield client


def kept(agent):
    ended = agent.run("print(x.tolist())", range(3))
    assert ended["state"] == "ok"
    return {agent.text(rank, ended["id"]) for rank in range(3)}


def undo(agent, do="undo"):
    execution_id = f"e-{uuid.uuid4().hex[:8]}"
    header, _ = agent.request(do, execution_id=execution_id, count=1)
    agent.executions.setdefault(execution_id, header["execution"])
    return agent.ended(execution_id)


def test_an_undo_whose_end_cannot_be_noted_ends_and_the_part_begins_anew_with_the_group(agent):
    for _ in range(2):
        agent.run("x = torch.zeros(2)", range(3))
        agent.run("x += 1", range(3), keep_undo=True)
        agent.request("break", what="jupyter_dist.agent.group.cells.dispatch:Dispatcher.count_no_more")
        assert undo(agent)["state"] == "ok"
        agent.wait(lambda: "The part 'undo' is off in this group" in agent.group["note"])
        agent.request("mend")
        assert kept(agent) == {"[0.0, 0.0]\n"}
        with pytest.raises(JupyterDistError, match="The part 'undo' is off in this group"):
            undo(agent)
        agent.request("restart")
        agent.wait_group("ready")
        agent.run("x = torch.zeros(2)", range(3))
        agent.run("x += 1", range(3), keep_undo=True)
        assert undo(agent)["state"] == "ok"
        assert undo(agent, "redo")["state"] == "ok"
        assert kept(agent) == {"[1.0, 1.0]\n"}


@pytest.mark.parametrize("what", ["starts:GroupStarts.replace_dead", "replacing.variables:Copies.look"])
def test_ranks_that_cannot_be_replaced_after_an_undo_have_the_cell_done_again(agent, what):
    for _ in range(2):
        agent.request("restart")
        agent.wait_group("ready")
        agent.run("import os; x = torch.zeros(2)", range(3))
        agent.run("x += 1\nif rank == 2: os._exit(1)", range(3), keep_undo=True)
        agent.wait_group("degraded")
        agent.request("break", what=f"jupyter_dist.agent.group.{what}")
        wanted = {"state": "undo", "others": "refuse"}
        said = []
        with contextlib.suppress(JupyterDistError):
            said.append(agent.request("replace", wanted=wanted))
        if said:  # it had begun
            agent.wait(lambda: "as the test wants" in (agent.group["note"] or ""))
        agent.wait_group("degraded")
        agent.request("mend")
        ended = agent.run("print(x.tolist())", range(2), silent=True)
        assert {agent.text(rank, ended["id"]) for rank in range(2)} == {"[1.0, 1.0]\n"}
        agent.request("replace", wanted=wanted)
        agent.wait_group("ready")
        assert kept(agent) == {"[0.0, 0.0]\n"}
