"""Cells on 2 nodes x 2 ranks, as on one machine: both node agents run here, and every rank is real."""

import contextlib
import json
import os
import socket

import pytest
from waits import until

from jupyter_dist.protocol.operations import BY_NAME
from jupyter_dist.protocol.wire.specs import PROTOCOL_VERSION
from jupyter_dist.system.processes import read_process

from .conftest import HEAD_FILES
from .twonodes import CREDENTIALS, OF_TASKS

ALL = (0, 1, 2, 3)
SUM = "t = torch.ones(1) * (rank + 1); dist.all_reduce(t); print(t.item())"


def agents(nodes):
    return [node.agent for node in nodes.nodes]


def test_each_rank_has_the_environment_of_torchrun_over_two_nodes(shared_nodes):
    client = shared_nodes.client
    names = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "NODE_RANK"]
    names += ["MASTER_ADDR", "MASTER_PORT", "GLOO_SOCKET_IFNAME", "TORCHELASTIC_USE_AGENT_STORE"]
    execution = client.run(f"import os, json; print(json.dumps([os.environ[n] for n in {names}]))", ALL)
    found = [json.loads(client.text(rank, execution["id"])) for rank in ALL]
    own = [["0", "0", "0"], ["1", "1", "0"], ["2", "0", "1"], ["3", "1", "1"]]
    assert [[row[0], row[1], row[4]] for row in found] == own
    assert {(row[2], row[3], row[5]) for row in found} == {("4", "2", "2")}
    nodes = client.group["nodes"]
    assert {row[7] for row in found} == {nodes[0]["address"]}
    assert len({row[8] for row in found}) == 1
    assert [row[9] for row in found] == [nodes[int(row[4])]["interface"] for row in found]
    assert [node["ranks"] for node in nodes] == ["0-1", "2-3"]
    assert [rank["node"] for rank in client.group["ranks"]] == [0, 0, 1, 1]


def test_ranks_get_neither_credentials_nor_what_an_engine_sets_for_its_tasks(shared_nodes):
    client = shared_nodes.client
    names = [*CREDENTIALS, *OF_TASKS]
    execution = client.run(f"import os; print([name for name in {names} if name in os.environ])", ALL)
    assert {client.text(rank, execution["id"]) for rank in ALL} == {"[]\n"}


def test_models_train_with_ddp_over_both_nodes(shared_nodes):
    client = shared_nodes.client
    code = """
from torch.nn.parallel import DistributedDataParallel
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.full((2, 3), float(rank + step))).sum().backward()
    optimizer.step()
print([round(v, 5) for v in model.module.weight.flatten().tolist()])
half = dist.new_group([1, 2])
t = torch.ones(1)
if rank in (1, 2):
    dist.all_reduce(t, group=half)
objects = [None] * 4
dist.all_gather_object(objects, (rank, t.item()))
print(objects)
"""
    execution = client.run(code, ALL)
    assert execution["state"] == "ok", (execution, client.text(0, name="stderr"))
    texts = {client.text(rank, execution["id"]) for rank in ALL}
    assert len(texts) == 1
    assert "[(0, 1.0), (1, 2.0), (2, 2.0), (3, 1.0)]" in texts.pop()


def test_everything_that_is_printed_arrives_in_order(shared_nodes):
    client = shared_nodes.client
    code = "import os\nos.write(1, b'first\\n')\nfor i in range(20_000): print('line', i)"
    execution = client.run(code, ALL)
    expected = "first\n" + "".join(f"line {i}\n" for i in range(20_000))
    for rank in ALL:
        assert client.text(rank, execution["id"]) == expected


def test_user_code_can_form_its_own_process_group(shared_nodes):
    client = shared_nodes.client
    code = "dist.destroy_process_group()\ndist.init_process_group('gloo')\n" + SUM
    execution = client.run(code, ALL)
    assert execution["state"] == "ok", (execution, client.text(0, name="stderr"))
    assert {client.text(rank, execution["id"]) for rank in ALL} == {"10.0\n"}


LARGE = """
store = dist.distributed_c10d._get_default_store()
store.set(f"fits{rank}", "x" * (8 << 20))
print(len(store.get(f"fits{(rank + 2) % 4}")))
store.set(f"large{rank}", "x" * (17 << 20))
"""
# Past what a LinkStore itself refuses.
LARGE_QUESTION = """
from jupyter_dist.rank.collectives import linkstore
found = linkstore._kept[-1]
linkstore.ask(found._path, {"do": "set", "key": "large", "store": found._name}, bytes(17 << 20), 60)
"""
NO_NUMBER = """
store = dist.distributed_c10d._get_default_store()
store.set(f"word{rank}", "word")
store.add(f"word{rank}", 1)
"""


def test_a_value_that_a_store_cannot_take_is_an_error_and_the_next_cell_is_heard(shared_nodes):
    client = shared_nodes.client
    refused = (
        (LARGE, "takes up to 8 MiB"),
        (LARGE_QUESTION, "too large for the link"),
        (NO_NUMBER, "is not a number"),
    )
    for code, words in refused:
        execution = client.run(code, ALL)
        assert execution["state"] == "error", execution
        wanted = {"kind": "error", "execution_id": execution["id"]}.items()
        errors = {header["rank"]: payload.decode() for header, payload in client.records if wanted <= header.items()}
        assert errors.keys() == set(ALL)
        assert all(words in error for error in errors.values()), errors
        execution = client.run("print(rank)", ALL)
        assert [client.text(rank, execution["id"]) for rank in ALL] == [f"{rank}\n" for rank in ALL]


ODD_QUESTIONS = """
import socket, time
from jupyter_dist.rank.collectives import linkstore
from jupyter_dist.transport.frames import encode_frame
path = linkstore._kept[0]._path
sound = encode_frame({"do": "set", "store": "mine", "key": "k"}, b"v")
odd = [{"do": "deliver"}, {"do": "fetch", "path": 3, "offset": "x"}, {"do": "add", "amount": [1]}, {"do": "wait", "keys": 7}]
with socket.socket(socket.AF_UNIX) as door:
    door.connect(path)
    door.sendall(b"".join(map(encode_frame, odd)) + sound * 30)
    decoder, answers = linkstore.FrameDecoder(), []
    while len(answers) < 34 and (data := door.recv(1 << 16)):
        answers += decoder.feed(data)
print(sum(not answer["ok"] for answer, _ in answers), answers[0][0]["error"])
"""


def test_questions_of_a_rank_that_cannot_be_answered_are_refused_and_cost_its_node_nothing(shared_nodes):
    client = shared_nodes.client
    for _ in range(2):
        execution = client.run(ODD_QUESTIONS, (3,))
        assert client.text(3, execution["id"]) == "4 The question cannot be answered: KeyError('folder')\n"
        assert client.run(SUM, ALL)["state"] == "ok"


def test_an_interrupt_ends_python_and_a_hung_collective_on_both_nodes(shared_nodes):
    client = shared_nodes.client
    holds_the_interpreter = "import ctypes; print('in', flush=True); ctypes.PyDLL(None).sleep(1000)"
    for code, ranks in (
        ("import time; time.sleep(1000)", ALL),
        ("dist.all_reduce(torch.ones(1))", (0, 2, 3)),
        (holds_the_interpreter, (3,)),
    ):
        execution = client.submit(code, ranks)
        client.wait(lambda id_=execution: client.executions[id_]["state"] == "running")
        if code == holds_the_interpreter:
            client.wait(lambda id_=execution: client.text(3, id_) == "in\n")
        client.request("interrupt", ranks=None)
        assert client.ended(execution)["state"] == "interrupted"
    again = client.run("variable = 1\n" + SUM, ALL)  # the process group was re-created
    assert again["state"] == "ok", again
    assert {client.text(rank, again["id"]) for rank in ALL} == {"10.0\n"}


def test_completion_memory_and_stacks_come_from_the_nodes(shared_nodes):
    client = shared_nodes.client
    client.run("a_long_name = 1", ALL)
    if "complete" in BY_NAME:
        answer, _ = client.request("complete", b"a_long_na", rank=3, cursor_pos=9)
        assert "a_long_name" in answer["matches"]
    client.request("watch", seconds=0.2)
    client.wait(lambda: client.samples and all(row["resident_bytes"] > 0 for row in client.samples[-1]["ranks"]))
    assert len(client.samples[-1]["ranks"]) == 4
    client.request("watch", seconds=0.0)
    answer, _ = client.request("stacks")
    assert [stack["ranks"] for stack in answer["stacks"]] == ["0-3"]


def test_a_killed_rank_is_reported_and_replaced_on_its_node(shared_nodes):
    client = shared_nodes.client
    client.run("kept = rank * 10", ALL)
    client.request("kill", rank=3)
    client.wait_group("degraded")
    assert client.group["ranks"][3]["exit"]["signal"] == 9
    assert "killed (on request)" in client.group["ranks"][3]["message"]
    client.request("replace")
    client.wait_group("ready")
    execution = client.run("print(globals().get('kept'))\n" + SUM, ALL)
    expected = ["0\n10.0\n", "10\n10.0\n", "20\n10.0\n", "None\n10.0\n"]
    assert [client.text(rank, execution["id"]) for rank in ALL] == expected


def test_a_rank_that_dies_during_a_collective_frees_the_others(shared_nodes):
    client = shared_nodes.client
    code = "import os, signal\nif rank == 2: os.kill(os.getpid(), signal.SIGSEGV)\ndist.all_reduce(torch.ones(1))"
    execution = client.run(code, ALL)
    assert execution["state"] == "lost"
    assert "SIGSEGV" in client.group["ranks"][2]["message"]
    client.wait_group("degraded")
    client.request("replace")
    client.wait_group("ready")
    assert client.run(SUM, ALL)["state"] == "ok"


def test_a_restart_keeps_the_node_agents_and_leaves_no_process(shared_nodes):
    client = shared_nodes.client
    before, old = agents(shared_nodes), [rank["pid"] for rank in client.group["ranks"]]
    client.run("import subprocess; child = subprocess.Popen(['sleep', '1000'], start_new_session=True).pid", ALL)
    execution = client.run("print(child)", ALL)
    old += [int(client.text(rank, execution["id"])) for rank in ALL]
    generation = client.group["generation"] + 1
    client.request("restart")
    client.wait(lambda: (client.group["generation"], client.group["state"]) == (generation, "ready"))
    assert agents(shared_nodes) == before
    until(lambda: not any(map(read_process, old)), lambda: [pid for pid in old if read_process(pid)])
    execution = client.run("print('kept' in globals())\n" + SUM, ALL)
    assert {client.text(rank, execution["id"]) for rank in ALL} == {"False\n10.0\n"}


def test_a_folder_that_a_node_does_not_have_is_named_with_the_node(shared_nodes):
    client = shared_nodes.client
    shared_nodes.cwd.rmdir()
    try:
        client.request("restart")
        client.wait_group("dead")
        error = client.group["error"]
        assert error["code"] == "start_failed"
        assert error["message"].startswith("Rank ")
        assert f"({socket.gethostname()}): there is no folder {shared_nodes.cwd}" in error["message"]
        assert {rank["state"] for rank in client.group["ranks"]} == {"dead"}
    finally:
        shared_nodes.cwd.mkdir()
    client.request("restart")
    client.wait_group("ready")
    assert client.run(SUM, ALL)["state"] == "ok"


def test_frameworks_take_the_ranks_for_two_nodes(shared_nodes):
    client = shared_nodes.client
    code = """
from accelerate import Accelerator
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
accelerator = Accelerator(cpu=True)
print(accelerator.process_index, accelerator.local_process_index, accelerator.gather(torch.tensor([rank])).tolist())
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("node", "local"))
t = torch.ones(1) * rank
dist.all_reduce(t, group=mesh["local"].get_group())
print(t.item(), mesh.get_local_rank("node"))
model = torch.nn.Linear(4, 4)
fully_shard(model, mesh=mesh)
model(torch.ones(1, 4)).sum().backward()
"""
    execution = client.run(code, ALL)
    assert execution["state"] == "ok", client.text(0, execution["id"], "stderr")
    texts = [client.text(rank, execution["id"]) for rank in ALL]
    assert texts == [f"{r} {r % 2} [0, 1, 2, 3]\n{1.0 if r < 2 else 5.0} {r // 2}\n" for r in ALL]


def test_fabric_takes_the_ranks_for_two_nodes(shared_nodes):
    client = shared_nodes.client
    client.run("from lightning_fabric import Fabric", ALL)
    code = """
fabric = Fabric(accelerator="cpu", devices=2, num_nodes=2, strategy="ddp")
fabric.launch()
module = fabric.setup(torch.nn.Linear(2, 1))
fabric.backward(module(torch.ones(1, 2)).sum())
print(fabric.node_rank, fabric.local_rank, fabric.world_size, fabric.all_reduce(torch.tensor(float(rank)), reduce_op="sum").item())
"""
    execution = client.run(code, ALL)
    assert execution["state"] == "ok", client.text(0, execution["id"], "stderr")
    assert [client.text(r, execution["id"]) for r in ALL] == [f"{r // 2} {r % 2} 4 6.0\n" for r in ALL]


def test_a_breakpoint_that_names_the_file_of_the_first_rank_stops_a_rank_of_another_node(shared_nodes):
    """Each node has the files of cells in a folder of its own."""
    pytest.importorskip("debugpy")
    of_part = pytest.importorskip("debugging.debugpage")  # the part can be removed
    client, page, code = shared_nodes.client, of_part.Debugger(shared_nodes.client), of_part.CODE
    page.attach((0, 2))
    first, other = (page.done(rank, "dumpCell", code=code)["sourcePath"] for rank in (0, 2))
    assert first != other
    assert os.path.basename(first) == os.path.basename(other)
    for rank in (0, 2):
        page.done(rank, "setBreakpoints", source={"path": first}, breakpoints=[{"line": 2}])
    assert page.done(2, "source", source={"path": first})["content"] == code
    cell = client.submit(code, (0, 2))
    for rank, path in ((0, first), (2, other)):
        page.wait_stopped(rank, 2)
        assert [frame["source"]["path"] for frame in page.stack(rank)] == [path, path]
        # A page translates what is in a rank's own folder.
        info = page.done(rank, "debugInfo")
        assert path.startswith(info["tmpFilePrefix"])
        assert [point["source"] for point in info["breakpoints"]] == [path]
    for rank in (0, 2):
        page.done(rank, "disconnect")
    assert client.ended(cell)["state"] == "ok"


def test_the_join_file_lets_only_its_owner_in(shared_nodes):
    assert os.stat(shared_nodes.join_file).st_mode & 0o777 == 0o600
    late = shared_nodes.join()  # both nodes have joined
    assert late.code() == 1
    assert late.text().strip().endswith("all 2 nodes have joined already.")
    twice = shared_nodes.join("--node-rank", "1")
    assert twice.code() == 1
    assert twice.text().strip().endswith("node 1 has joined already.")
    none = shared_nodes.join("--node-rank", "7")
    assert none.code() == 1
    assert "there is no node 7: the group has 2." in none.text()
    assert shared_nodes.client.run(SUM, ALL)["state"] == "ok"


def test_a_stranger_and_another_version_are_told_why_they_cannot_join(shared_nodes, tmp_path):
    import zmq

    content = json.loads(shared_nodes.join_file.read_text())
    (tmp_path / "g").mkdir()
    path = tmp_path / "g" / "join.json"
    path.write_text(json.dumps({**content, "client_secret": zmq.curve_keypair()[1].decode()}))
    strangers = [shared_nodes.join_with(path)]
    path = path.with_name("server.json")
    path.write_text(json.dumps({**content, "server_key": zmq.curve_keypair()[0].decode()}))
    strangers.append(shared_nodes.join_with(path))
    path = path.with_name("version.json")
    for change, named in (
        ({"version": "0.0.1"}, "0.0.1"),
        ({"protocol": PROTOCOL_VERSION + 1}, f"(protocol {PROTOCOL_VERSION + 1})"),
        ({"protocol": PROTOCOL_VERSION - 1}, f"(protocol {PROTOCOL_VERSION - 1})"),
    ):
        path.write_text(json.dumps({**content, **change}))
        other = shared_nodes.join_with(path)
        assert other.code() == 1
        assert "The group runs jupyter_dist " in other.text()
        assert named in other.text()
    for stranger in strangers:
        assert stranger.code() == 1
        assert "does not accept the key of this join file" in stranger.text()
    assert len(shared_nodes.client.group["nodes"]) == 2
    assert shared_nodes.client.run(SUM, ALL)["state"] == "ok"


def is_closed(connection):
    """Whether the other side has closed it."""
    with contextlib.suppress(BlockingIOError):
        try:
            while connection.recv(1 << 10):
                pass
        except ConnectionError:
            pass
        return True
    return False


def test_idle_connections_to_the_head_take_none_of_its_files_that_cells_need_and_leave_nothing(shared_nodes):
    client, folder = shared_nodes.client, f"/proc/{shared_nodes.head.process.pid}/fd"
    host, _, port = json.loads(shared_nodes.join_file.read_text())["endpoints"][0].rpartition(":")
    for _ in range(2):
        with contextlib.ExitStack() as opened:
            strangers = []
            for _ in range(2 * HEAD_FILES):
                strangers.append(opened.enter_context(socket.create_connection((host.strip("[]"), int(port)))))
                strangers[-1].setblocking(False)
            # The head has as many as it takes, and has closed others.
            until(lambda: sum(map(is_closed, strangers)) > 50, lambda: len(os.listdir(folder)))
            for _ in range(2):
                assert client.run(SUM, ALL)["state"] == "ok"
                assert len(os.listdir(folder)) < 0.8 * HEAD_FILES
        assert client.run(SUM, ALL)["state"] == "ok"
        until(lambda: len(os.listdir(folder)) < HEAD_FILES / 4, lambda: len(os.listdir(folder)))


@pytest.mark.part("saves")
def test_a_group_on_two_nodes_is_saved_in_a_folder_that_both_have_and_restored(shared_nodes, tmp_path):
    client, folder = shared_nodes.client, tmp_path / "saves"
    client.run("kept = torch.full((2,), float(rank))\nhalves = dist.new_group([1, 2])", ALL)
    assert client.transfer("save", folder, ALL)["state"] == "ok", client.text(3, name="stderr")
    client.run("kept += 100; del halves", ALL)
    for _ in range(2):
        assert client.transfer("restore", folder, ALL)["state"] == "ok", client.text(3, name="stderr")
        code = "total = kept.clone()\nif rank in (1, 2): dist.all_reduce(total, group=halves)\nprint(total.tolist())"
        execution = client.run(code, ALL)
        sums = {0: 0.0, 1: 3.0, 2: 3.0, 3: 3.0}
        assert {rank: client.text(rank, execution["id"]) for rank in ALL} == {
            rank: f"[{total}, {total}]\n" for rank, total in sums.items()
        }


def test_a_node_agent_that_is_asked_to_end_does_so_and_says_so(shared_nodes):
    client, node = shared_nodes.client, shared_nodes.nodes[1]
    node.process.terminate()
    assert node.code() == 1
    assert "it was asked to end (a signal)." in node.text()
    client.wait(lambda: client.group["nodes"][1]["state"] == "gone")
    assert client.group["nodes"][1]["message"] == "its node agent ended with code 1"
    client.wait_group("degraded")  # the last test of this group
