"""64 ranks on 8 simulated nodes (simulated.py): what the head does for many, and that the simulation is true."""

import subprocess
import sys
from pathlib import Path

import pytest
from agent.harness import AgentProcess
from waits import PATIENCE, until

NODES, RANKS_PER_NODE = 8, 8
ALL = range(NODES * RANKS_PER_NODE)


class ManyNodes:
    def __init__(self, folder: Path) -> None:
        self.head = AgentProcess(folder)
        self.client = self.head.client()

    def begin(self) -> None:
        self.client.start(
            len(ALL),
            wait=False,
            launcher="external",
            ranks_per_node=[len(ALL) // NODES] * NODES,
            start_timeout_seconds=PATIENCE,
        )
        join_file = self.head.directory / "join.json"
        until(join_file.exists)
        self.log = self.head.directory.with_suffix(".nodes.log")
        with self.log.open("wb") as log:
            self.nodes = subprocess.Popen(
                [sys.executable, "-m", "nodes.simulated", str(join_file), "0", str(NODES)],
                cwd=Path(__file__).parents[1],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.ready()

    def ready(self) -> None:
        self.client.wait_group("ready", "dead")
        assert self.client.group["state"] == "ready", (self.client.group, self.log.read_text())

    def end(self) -> None:
        self.head.__exit__()
        assert self.nodes.wait(PATIENCE) == 0, self.log.read_text()
        assert self.log.read_text() == ""  # each node agent ended because its head said so


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    nodes = ManyNodes(tmp_path_factory.mktemp("many") / "g")
    nodes.begin()
    yield nodes
    nodes.end()


def test_all_nodes_joined_under_their_own_names(many):
    nodes = many.client.group["nodes"]
    assert [node["host"] for node in nodes] == [f"sim{number:03}" for number in range(NODES)]
    assert [node["ranks"] for node in nodes] == [f"{8 * n}-{8 * n + 7}" for n in range(NODES)]


def test_what_each_rank_prints_is_kept_once_in_its_order(many):
    code = "for line in range(200):\n    print(rank, line)\n"
    execution = many.client.run(code, ALL)
    assert execution["state"] == "ok"
    assert execution["statuses"][0]["ranks"] == f"0-{len(ALL) - 1}"
    for rank in ALL:
        expected = "".join(f"{rank} {line}\n" for line in range(200))
        assert many.client.text(rank, execution["id"]) == expected
    kinds = [header["kind"] for header, _ in many.client.records if header.get("execution_id") == execution["id"]]
    assert (kinds[0], kinds[-1], kinds.count("rank_end")) == ("begin", "end", len(ALL))


def test_cells_run_and_fail_on_the_ranks_that_they_are_for(many):
    execution = many.client.run("print(1 / (rank - 17))", range(8, 24))
    assert execution["state"] == "error"
    assert {status["ranks"]: status["status"] for status in execution["statuses"]} == {
        "8-16,18-23": "ok",
        "17": "error",
    }
    assert many.client.text(18, execution["id"]) == "1.0\n"
    assert many.client.text(24, execution["id"]) == ""


def test_a_cell_may_follow_before_the_slowest_rank_has_ended(many):
    first = many.client.submit("import time\nif rank == 3:\n    time.sleep(0.5)\nprint('first')", ALL)
    second = many.client.submit("print('second')", ALL)
    assert many.client.ended(first)["state"] == many.client.ended(second)["state"] == "ok"
    assert {many.client.text(rank, first) + many.client.text(rank, second) for rank in ALL} == {"first\nsecond\n"}


def test_answers_that_come_one_after_the_other_are_few_messages_of_their_nodes(many):
    def num_messages():
        """The messages with output and replies so far, as rank 0 has it, which answers first."""
        execution = many.client.run("print(simulation.sent['records'])", [0])
        return int(many.client.text(0, execution["id"]))

    many.client.run("simulation.spread_seconds = 0.1", [0])  # ranks of a node answer within 10 ms
    before = num_messages()
    execution = many.client.run("print(rank)", ALL)
    late = num_messages() - before - 1  # the cell that counted
    many.client.run("simulation.spread_seconds = 0", [0])
    assert NODES <= late <= len(ALL) / 2  # and not one for each rank
    assert [many.client.text(rank, execution["id"]) for rank in ALL] == [f"{rank}\n" for rank in ALL]


def test_a_rank_that_is_killed_is_named_and_the_others_go_on(many):
    many.client.request("kill", rank=42)
    many.client.wait_group("degraded")
    dead = [rank["rank"] for rank in many.client.group["ranks"] if rank["state"] == "dead"]
    assert dead == [42]
    others = [rank for rank in ALL if rank != 42]
    assert many.client.run("x = rank", others)["state"] == "ok"
    many.client.request("replace")
    many.ready()
    assert many.client.run("print('x' in globals())", ALL)["state"] == "ok"
    lines = {rank: many.client.text(rank).splitlines()[-1] for rank in ALL}
    assert [rank for rank, line in lines.items() if line == "False"] == [42]


def test_a_restart_gives_every_rank_a_new_process(many):
    before = {rank["pid"] for rank in many.client.group["ranks"]}
    many.client.run("y = 1", ALL)
    many.client.request("restart", key=None)
    many.client.wait(lambda: many.client.group["generation"] >= 1 and many.client.group["state"] == "ready")
    assert before.isdisjoint({rank["pid"] for rank in many.client.group["ranks"]})
    execution = many.client.run("print('y' in globals())", ALL)
    assert {many.client.text(rank, execution["id"]) for rank in ALL} == {"False\n"}
