"""An agent that fails while its group is resized: the group takes cells again, and no rank loses its variables."""

import pytest
from extending.packages import agent_with_faults

RESIZING = "jupyter_dist.parts.resizing.agent.resizing"
MODEL = """
from torch.nn.parallel import DistributedDataParallel as DDP
torch.manual_seed(0)
model = DDP(torch.nn.Linear(8, 8))
def step():
    loss = model(torch.ones(2, 8)).square().mean()
    loss.backward()
    return loss.item()
kept = 41
"""


@pytest.fixture
def agent(tmp_path):
    with agent_with_faults(tmp_path) as client:
        assert client.run(MODEL)["state"] == "ok"
        yield client


@pytest.mark.parametrize(
    ("what", "size", "note"),
    [
        ("Resize._compare", 2, "could not be resized to 3 ranks, and has 2 as before: RuntimeError"),
        ("Resize._copy", 3, "Variables could not be copied: RuntimeError"),
        ("Resize._divide", 3, "Variables could not be divided: RuntimeError"),
        ("rejoin_with", 2, "could not be resized to 3 ranks, and has 2 as before: RuntimeError"),
    ],
)
def test_a_resize_that_fails_leaves_a_group_that_works(agent, what, size, note):
    for _ in range(2):
        agent.request("break", what=f"{RESIZING}:{what}")
        agent.request("resize", num_ranks=3)
        agent.wait_group("ready")
        assert note in agent.group["note"]
        assert agent.group["spec"]["world_size"] == size
        agent.request("mend")
        assert agent.run("assert kept == 41\nif world_size == 2: step()")["state"] == "ok"
        assert agent.run("y = torch.ones(1); dist.all_reduce(y)", range(size))["state"] == "ok"
        if size == 3:
            agent.request("resize", num_ranks=2, others="keep")
            agent.wait(lambda: agent.group["spec"]["world_size"] == 2 and agent.group["state"] == "ready")
    agent.request("resize", num_ranks=3, others="keep")
    agent.wait(lambda: agent.group["spec"]["world_size"] == 3 and agent.group["state"] == "ready")
    assert agent.run("assert kept == 41", range(2))["state"] == "ok"
