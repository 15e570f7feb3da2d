"""Nodes over a bad network, whose link is cut again and again: each line of each cell arrives once, in order."""

import os

import pytest

from .lossy import cable, open_tap
from .network import Network, built
from .test_namespaces import ALL, LEASE_SECONDS, two_nodes

DELAY_SECONDS, LOSS = 0.025, 0.02  # of each frame, in each direction: 50 ms for a round trip
AHEAD = 4  # cells that wait in the queue
CELL = """
for line in range(20):
    print(NUMBER, rank, line)
    if line % 10 == 0:
        dist.all_reduce(t := torch.ones(1)); assert t.item() == 4
"""


class LossyNetwork(Network):
    """One with a user-space switch before each node."""

    def __init__(self):
        super().__init__()
        self.tag = f"jl{os.getpid() % 100_000}"
        self.bridge = f"{self.tag}b"
        self._cables = []

    def _connect(self, name):
        pair = open_tap(f"{name}o"), open_tap(f"{name}i", name)
        self._cables.append(cable([pair], DELAY_SECONDS, LOSS))

    def remove(self):
        for process in self._cables:
            process.kill()
            process.wait()
        super().remove()


@pytest.fixture
def lossy():
    yield from built(LossyNetwork())


def test_each_line_arrives_once_over_a_bad_network_that_is_cut(tmp_path, lossy, request):
    """`--bad-cells 2000 --timeout 21600 -o faulthandler_timeout=21600` is a soak with 20 cuts."""
    num_cells = request.config.option.bad_cells
    num_cuts = max(1, num_cells // 100)
    with two_nodes(tmp_path / "g", lossy, node_lease_seconds=6 * LEASE_SECONDS) as nodes:
        nodes.ready()
        client, running, cuts = nodes.client, [], 0
        for number in range(num_cells):
            running.append((number, client.submit(CELL.replace("NUMBER", str(number)), ALL)))
            if number == (2 * cuts + 1) * num_cells // (2 * num_cuts):
                cuts += 1
                lossy.cut(1)
                client.wait(lambda: client.group["nodes"][1]["state"] == "unreachable")
                lossy.heal(1)
            while len(running) > AHEAD or (running and number == num_cells - 1):
                check(client, *running.pop(0))
        assert cuts == num_cuts
        assert {node["state"] for node in client.group["nodes"]} == {"joined"}


def check(client, number, execution):
    ended = client.ended(execution)
    assert ended["state"] == "ok", (number, ended, client.text(0, execution, "stderr"))
    for rank in ALL:
        assert client.text(rank, execution) == "".join(f"{number} {rank} {line}\n" for line in range(20)), (
            number,
            rank,
        )
    client.records[:] = [record for record in client.records if record[0].get("execution_id") != execution]
