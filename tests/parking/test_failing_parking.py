"""An agent that fails while its group is parked or resumed: the group comes back, or can be brought back."""

import pytest
from extending.packages import agent_with_faults

from jupyter_dist.protocol.errors import JupyterDistError

OF_PARKING = "jupyter_dist.parts.parking.agent.parking"
MODEL = """
from torch.nn.parallel import DistributedDataParallel as DDP
torch.manual_seed(0)
model = DDP(torch.nn.Linear(8, 8))
big = torch.arange(100_000.0) + rank
def step():
    loss = model(torch.ones(2, 8)).square().mean()
    loss.backward()
    return loss.item()
"""


@pytest.fixture
def agent(tmp_path):
    with agent_with_faults(tmp_path) as client:
        assert client.run(MODEL)["state"] == "ok"
        yield client


def works(agent):
    return agent.run("assert big.sum() == torch.arange(100_000.0).sum() + 100_000 * rank; step()")["state"] == "ok"


@pytest.mark.parametrize("what", ["_parked", "Parking._ask_all"])
def test_a_group_that_is_parked_half_way_is_resumed(agent, what):
    for _ in range(2):
        agent.request("break", what=f"{OF_PARKING}:{what}", after=0)
        agent.request("park", to="file")
        if what == "_parked":
            agent.wait_group("ready")
            assert "The group was not parked: RuntimeError('as the test wants')" in agent.group["note"]
        else:  # the way back fails, too
            agent.wait_group("parked")
            assert "It stays parked" in agent.group["note"]
        agent.request("mend")
        assert works(agent)


def test_a_group_whose_way_back_fails_stays_parked_and_can_be_resumed(agent):
    for _ in range(2):
        agent.request("park", to="file")
        agent.wait_group("parked")
        agent.request("break", what=f"{OF_PARKING}:Parking._joined")
        cell = agent.submit("step()", [0, 1])
        assert "The group could not be resumed: the agent failed" in agent.ended(cell)["error"]["message"]
        agent.request("mend")
        assert works(agent)


def test_a_part_that_fails_while_the_group_is_parked_resumes_it(agent):
    """No cell would resume it any more, and all would wait for ever."""
    for _ in range(2):
        agent.request("park", to="file")
        agent.wait_group("parked")
        agent.request("break", what=f"{OF_PARKING}:Parking.look")
        agent.wait_group("ready")
        agent.request("mend")
        assert works(agent)
        with pytest.raises(JupyterDistError, match="The part 'parking' is off in this group"):
            agent.request("park", to="file")
        agent.request("restart")
        agent.wait_group("ready")
        assert agent.run(MODEL)["state"] == "ok"
        agent.request("park", to="file")
        agent.wait_group("parked")
        assert works(agent)
