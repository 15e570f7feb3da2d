"""Links that are cut, and node agents and heads that are killed."""

import json
import os
import shutil
import signal
import time

import pytest
from clocks import jumping
from waits import PATIENCE, until

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.system.processes import read_process

from .relay import Relay
from .twonodes import TwoNodes

ALL = (0, 1, 2, 3)
SUM = "t = torch.ones(1) * (rank + 1); dist.all_reduce(t); print(t.item())"
# Silence is named after 2.6 s, and the head calls the ranks of a node dead 5 s after its lease.
LEASE_SECONDS = 10.0


DAY = 86_400


class Cuttable(TwoNodes):
    """Node 1 joins through a relay. Where there is a C compiler, its clock is a day behind, and that of node 0 ahead."""

    def open(self, clocks, lease_seconds) -> None:
        self.clocks = clocks
        self.begin(node_lease_seconds=lease_seconds)
        content = json.loads(self.join_file.read_text())
        host, _, port = content["endpoints"][0].rpartition(":")
        self.relay = Relay((host, int(port)))
        self.far_file = self.head.directory.parent / "far" / "join.json"
        self.far_file.parent.mkdir()
        self.far_file.write_text(json.dumps({**content, "endpoints": [self.relay.endpoint]}))
        self.join("--node-rank", "0", **self.clocks[0])
        self.far = self.join_far()
        self.ready()

    def join_far(self):
        files = {"TMPDIR": str(self.far_file.parent)}
        self.far = self.join_with(self.far_file, "--node-rank", "1", **self.clocks[1], **files)
        return self.far

    def rank_pids(self) -> list[int]:
        return [rank["pid"] for rank in self.client.group["ranks"]]


def opened(tmp_path_factory, lease_seconds):
    nodes, clocks = Cuttable(tmp_path_factory.mktemp("links") / "g"), [{}, {}]
    if shutil.which("cc") or shutil.which("gcc"):
        clocks = [jumping(tmp_path_factory.mktemp("clock"), days * DAY)[1] for days in (1, -1)]
    nodes.open(clocks, lease_seconds)
    yield nodes
    nodes.relay.close()
    nodes.end()


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    """Its leases run out."""
    yield from opened(tmp_path_factory, LEASE_SECONDS)


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    """Its links heal before its leases run out, however busy the machine is."""
    yield from opened(tmp_path_factory, 4 * PATIENCE)


def node_state(group, node, *states):
    group.client.wait(lambda: group.client.group["nodes"][node]["state"] in states)
    return group.client.group["nodes"][node]


def files_of_far(group):
    return list(group.far_file.parent.glob("jupyter-dist-node-*"))


def replaced(group):
    """A new agent takes the place of one that has gone."""
    group.join_far()
    node_state(group, 1, "joined")
    group.client.request("replace")
    group.client.wait_group("ready")
    execution = group.client.run(SUM, ALL)
    assert {group.client.text(rank, execution["id"]) for rank in ALL} == {"10.0\n"}


def test_clocks_that_are_days_apart_decide_nothing(patient):
    """Nor do they in the other tests of this file: leases, beats, ends."""
    if not patient.clocks[0]:
        pytest.skip("needs a C compiler")
    client, began = patient.client, time.time()
    execution = client.run("import time; print(time.time())\n" + SUM, ALL)
    said = [client.text(rank, execution["id"]).split() for rank in ALL]
    assert [round((float(clock) - began) / DAY) for clock, _ in said] == [1, 1, -1, -1]  # they do differ
    assert {total for _, total in said} == {"10.0"}
    found = client.executions[execution["id"]]
    assert began - PATIENCE < found["started_at"] <= found["ended_at"] < began + PATIENCE
    assert all(0 <= seconds < PATIENCE for seconds in found["rank_seconds"].values())


def test_a_link_that_is_cut_and_heals_costs_no_line_and_doubles_none(patient, tmp_path):
    client, healed = patient.client, tmp_path / "healed"
    code = f"""
import os, time
for i in range(120):
    while i == 110 and not os.path.exists({str(healed)!r}): time.sleep(0.05)
    print('line', i); time.sleep(0.05)
"""
    code += SUM
    execution = client.submit(code, ALL)
    client.wait(lambda: client.text(3, execution))
    patient.relay.cut()
    node = node_state(patient, 1, "unreachable")
    assert "The link is lost" in node["message"]
    assert node["message_words"][0]["text"] == "The link is lost; its ranks may still run."
    client.wait(lambda: [rank["state"] for rank in client.group["ranks"]] == ["busy"] * 2 + ["unresponsive"] * 2)
    assert "The link to node 1" in client.group["ranks"][2]["message"]
    assert client.group["ranks"][2]["message_words"][0]["text"].startswith("The link to %1 is lost.")
    held = client.submit("print('held')", (2,))
    assert client.executions[held]["state"] == "queued"
    assert client.group["ranks"][3]["execution_id"] == execution  # its cell keeps running
    time.sleep(0.5)  # beyond what both sides of the link had buffered
    patient.relay.heal()
    node_state(patient, 1, "joined")
    healed.touch()
    assert client.ended(execution)["state"] == "ok"
    expected = "".join(f"line {i}\n" for i in range(120)) + "10.0\n"
    for rank in ALL:
        assert client.text(rank, execution) == expected
    assert client.ended(held)["state"] == "ok"
    assert client.text(2, held) == "held\n"
    client.wait(lambda: [rank["state"] for rank in client.group["ranks"]] == ["idle"] * 4)
    assert client.run(SUM, ALL)["state"] == "ok"


def held_by_a_cut_link(group, tmp_path):
    """A cell for all ranks that waited for one of rank 0, and could begin while the link to node 1 is cut."""
    client, go = group.client, tmp_path / "go"
    before = client.submit(f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.05)", (0,))
    client.wait(lambda: client.executions[before]["state"] == "running")
    held = client.submit(SUM, ALL)
    group.relay.cut()
    node_state(group, 1, "unreachable")
    go.touch()
    assert client.ended(before)["state"] == "ok"
    client.wait(lambda: client.executions[held].get("warning"))
    assert client.executions[held]["warning"].startswith("The link to node 1")
    assert client.executions[held]["warning"].endswith("The cell starts when it is back.")
    assert client.executions[held]["state"] == "queued"
    return held


def test_a_queued_cell_is_held_while_a_link_is_cut(patient, tmp_path):
    held = held_by_a_cut_link(patient, tmp_path)
    patient.relay.heal()
    assert patient.client.ended(held)["state"] == "ok"
    assert {patient.client.text(rank, held) for rank in ALL} == {"10.0\n"}
    assert patient.client.executions[held].get("warning") is None


def test_a_link_that_stays_cut_ends_a_cell_that_waited_for_it(group, tmp_path):
    held = held_by_a_cut_link(group, tmp_path)
    ended = group.client.ended(held)
    assert (ended["state"], ended["error"]["code"]) == ("aborted", "rank_dead")
    assert group.far.code() == 1
    group.relay.heal()
    replaced(group)


def test_a_link_that_stays_cut_ends_the_ranks_of_its_node(group):
    client = group.client
    execution = client.submit("import time; time.sleep(1000)", ALL)
    client.wait(lambda: client.group["ranks"][3]["state"] == "busy")
    pids = group.rank_pids()
    group.relay.cut()
    assert group.far.code() == 1  # by itself
    assert f"the head could not be reached for {LEASE_SECONDS:g} s" in group.far.text()
    assert not any(map(read_process, pids[2:]))
    node = node_state(group, 1, "gone")
    assert "could not be reached" in node["message"]
    client.wait_group("degraded")
    assert [rank["state"] for rank in client.group["ranks"]][2:] == ["dead", "dead"]
    assert all(map(read_process, pids[:2]))
    with pytest.raises(JupyterDistError) as refused:
        client.request("restart")
    assert "Node 1" in refused.value.message
    assert "join" in refused.value.hint
    client.request("interrupt", ranks=None)
    assert client.ended(execution)["state"] == "lost"
    group.relay.heal()
    replaced(group)


def test_a_killed_node_agent_takes_its_ranks_along_and_is_reported(group):
    client = group.client
    client.run("import subprocess; child = subprocess.Popen(['sleep', '1000'], start_new_session=True).pid", ALL)
    execution = client.run("print(child)", ALL)
    pids = [*group.rank_pids()[2:], int(client.text(2, execution["id"])), int(client.text(3, execution["id"]))]
    assert len(files_of_far(group)) == 1
    os.kill(group.far.agent, signal.SIGKILL)
    assert group.far.code() == 128 + signal.SIGKILL
    assert files_of_far(group) == []
    assert "the node agent was killed (signal 9), and its ranks with it." in group.far.text()
    assert not any(map(read_process, pids))
    assert node_state(group, 1, "gone")["message"] == "its node agent was killed (signal 9)"
    client.wait_group("degraded")
    assert "its node agent was killed (signal 9)" in client.group["ranks"][2]["message"]
    replaced(group)


def test_a_node_whose_watcher_is_killed_too_is_given_up_after_the_lease(group):
    pids = [*group.rank_pids()[2:], group.far.agent]
    os.kill(group.far.process.pid, signal.SIGSTOP)  # so that it does not tell
    os.kill(group.far.agent, signal.SIGKILL)
    os.kill(group.far.process.pid, signal.SIGKILL)
    group.far.process.wait()
    node_state(group, 1, "gone")
    group.client.wait_group("degraded")
    until(lambda: not any(process and process.state != "Z" for process in map(read_process, pids)))
    (left,) = files_of_far(group)
    replaced(group)  # its agent removes what the other has left
    assert len(files_of_far(group)) == 1
    assert not left.exists()


def test_a_killed_head_leaves_no_process_on_any_node(group):
    node, pids = group.nodes[0], group.rank_pids()[:2]
    os.kill(group.client.group["agent_pid"], signal.SIGKILL)
    assert node.code() == 1
    assert f"the head could not be reached for {LEASE_SECONDS:g} s" in node.text()
    assert not any(map(read_process, pids))
    shutil.rmtree(group.head.directory)  # a server reads its logs from there
