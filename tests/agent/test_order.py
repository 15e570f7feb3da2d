"""In which order an agent sends output and ends of cells: real ranks, and a client that reads late."""

from __future__ import annotations

import math
import time
from contextlib import closing

import pytest
from waits import until

from jupyter_dist.agent.agent import MANY_RANKS, MAX_OVERTAKEN_BYTES, OVERTAKE_SECONDS, Agent
from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.processes.records import receive
from jupyter_dist.agent.requests import handlers_of
from jupyter_dist.journal.reader import JournalCursor
from jupyter_dist.protocol.wire.specs import ExecutionSpec, GroupSpec


def test_the_end_of_a_cell_does_not_wait_for_the_output_of_another_that_nobody_reads(pair):
    folder = pair.agent.directory.parent
    go, done = folder / "go", folder / "done"
    wait = "import os, time\nwhile not os.path.exists({!r}): time.sleep(0.01)\n"
    num_bytes = 4 * MAX_OVERTAKEN_BYTES
    write = f"n = os.write(1, b'x' * {num_bytes})\nopen({str(done)!r}, 'w').close()"
    flood = pair.submit(wait.format(str(go)) + write, [0])
    other = pair.submit(wait.format(str(done)) + "print('other')", [1])
    pair.wait(lambda: pair.executions[other]["state"] == "running")
    go.touch()
    with closing(JournalCursor(pair.agent.directory / "journal")) as journal:
        until(lambda: any(_ends(record, other) for record in journal.read()))
    time.sleep(2 * OVERTAKE_SECONDS)  # what an end waits for records at most
    pair.wait_final(other)
    assert len(pair.text(0, flood)) < num_bytes
    pair.wait_final(flood)
    assert len(pair.text(0, flood)) == num_bytes  # more than can be read later: its end comes after all of it
    for file in (go, done):
        file.unlink()


def _ends(record, execution_id):
    return (record.header["kind"], record.header.get("execution_id")) == ("end", execution_id)


def agent_of(folder, world_size):
    """An agent whose ranks are idle, and have no processes."""
    agent = Agent(folder, handlers_of)
    spec = GroupSpec("g-1", "g", world_size, "cpu", "gloo", str(folder))
    agent.group = AgentGroup(spec, folder, lambda: None, agent._group_changed, agent._execution_changed)
    agent.group.prepare()
    for rank in agent.group.ranks:
        rank.set_state("idle")
    agent.group.process_group.formed()
    return agent


def submit(agent, execution_id):
    spec = ExecutionSpec(execution_id=execution_id, ranks=list(range(agent.group.spec.world_size)))
    return agent.group.dispatcher.submit(AgentExecution(spec, b"1"))


def latest_at(agent, execution_id):
    """Until when the end of a cell waits for output of others."""
    return agent._link._changes[execution_id][0].latest_at


@pytest.mark.parametrize("world_size", [2, MANY_RANKS + 1])
async def test_an_end_waits_only_so_long_however_many_ranks_have_ended_their_parts_before(tmp_path, world_size):
    agent = agent_of(tmp_path, world_size)
    with closing(agent.group):
        execution = submit(agent, "e-1")
        for rank in agent.group.ranks:
            assert execution.state == "running"
            receive(rank, {"t": "reply", "execution_id": "e-1", "status": "ok", "seconds": 0.1}, b"")
        assert execution.state == "ok"
        assert latest_at(agent, "e-1") < math.inf


async def test_the_end_of_a_cell_that_never_began_waits_only_so_long(tmp_path):
    agent = agent_of(tmp_path, 2)
    with closing(agent.group):
        submit(agent, "e-1")
        queued = submit(agent, "e-2")
        agent.group.dispatcher.cancel(queued)
        assert queued.state == "aborted"
        assert latest_at(agent, "e-2") < math.inf
