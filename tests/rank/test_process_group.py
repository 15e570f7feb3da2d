"""Collectives, ending a hung one, and re-creating the process group with all variables kept."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from rankclient import RankClient
from waits import PATIENCE, until

TORCH = tuple(map(int, metadata.version("torch").split(".")[:2]))
# Seen: not with 2.5.1, 2.7.1, 2.8.0 and 2.9.1, but with 2.12.0; 2.10 and 2.11 were not tried.
records_gloo = pytest.mark.skipif(
    TORCH < (2, 12), reason="what gloo of this torch waits in is not in the flight recorder"
)
names_threads = pytest.mark.skipif(TORCH < (2, 13), reason="the thread that gloo of this torch polls in has no name")

MakeGroup = Callable[..., list[RankClient]]
_numbers = itertools.count()


def run_all(group: list[RankClient], code: str) -> list[str]:
    started = [rank.start(code) for rank in group]
    results = [rank.result(execution_id) for rank, execution_id in zip(group, started)]
    assert [result.status for result in results] == ["ok"] * len(group), results
    return [result.text() for result in results]


def rejoin(group: list[RankClient], tmp_path: Path) -> list[int]:
    """Re-create the process group; return how many subgroups each rank re-created with it."""
    store = tmp_path / f"rejoined{next(_numbers)}"
    numbers = [rank.post_rejoin(store) for rank in group]
    answers = [rank.answer(number) for rank, number in zip(group, numbers)]
    assert all(answer["ok"] and answer["left"] == [] for answer in answers), answers
    return [answer["num_subgroups"] for answer in answers]


def test_all_reduce(make_group: MakeGroup) -> None:
    code = "t = torch.ones(1) * (rank + 1)\ndist.all_reduce(t)\nprint(t.item(), dist.get_world_size())"
    assert run_all(make_group(2), code) == ["3.0 2\n"] * 2


def test_ranks_do_not_share_their_random_state(make_group: MakeGroup) -> None:
    code = "import numpy as np, random\nprint(torch.rand(1).item(), np.random.rand(), random.random())"
    first, second = (text.split() for text in run_all(make_group(2), code))
    assert all(one != other for one, other in zip(first, second))


def test_joining_ranks_wait_as_long_as_torch_would(make_group: MakeGroup) -> None:
    (rank,) = make_group(1, join_timeout_seconds=5.0)
    code = "print(dist.group.WORLD._get_backend(torch.device('cpu')).options._timeout)"
    assert rank.run(code).text() == "0:30:00\n"


def test_a_process_group_that_was_re_created_can_be_divided(make_group: MakeGroup, tmp_path: Path) -> None:
    """Meshes on devices divide it. It needs a store and the list of its ranks; torch ends the process otherwise."""
    group = make_group(2)
    code = (
        "store = dist.group.WORLD.get_group_store(); store.set(str(rank), 'here'); print(store.get(str(1 - rank)))\n"
        "options = dist.group.WORLD._get_backend(torch.device('cpu')).options\n"
        "print(getattr(options, 'global_ranks_in_group', [0, 1]))"
    )
    for _ in range(2):
        rejoin(group, tmp_path)
        assert run_all(group, code) == ["b'here'\n[0, 1]\n"] * 2


HANGS = {
    "all_reduce": "t = torch.ones(3)\nprint('go')\ndist.all_reduce(t)",
    "recv": "t = torch.ones(3)\nprint('go')\ndist.recv(t, src=1)",
    "barrier": "print('go')\ndist.barrier()",
    "wait": "t = torch.ones(3)\nwork = dist.all_reduce(t, async_op=True)\nprint('go')\nwork.wait()",
    "new_group": "print('go')\ndist.new_group([0, 1])",
    "all_gather_object": "print('go')\nout = [None, None]\ndist.all_gather_object(out, rank)",
    "backward": "x = net(torch.ones(2, 2)).sum()\nprint('go')\nx.backward()",
}


@pytest.mark.parametrize("what", HANGS)
def test_hung_collective_is_ended_and_the_group_formed_anew(make_group: MakeGroup, tmp_path: Path, what: str) -> None:
    group = make_group(2)
    model = "from torch.nn.parallel import DistributedDataParallel as DDP\nnet = DDP(torch.nn.Linear(2, 2))"
    run_all(group, f"kept = rank\n{model if what == 'backward' else ''}")
    execution_id = group[0].start(HANGS[what])
    group[0].wait_text("go")
    group[0].interrupt(execution_id)
    result = group[0].result(execution_id)
    assert result.status == "interrupted"
    assert result.reply["process_group"] == "broken"
    assert result.error["ename"] == "KeyboardInterrupt"
    assert "GLHF" not in result.traceback
    assert "never completed" in result.traceback
    assert rejoin(group, tmp_path) == [0, 0]
    assert run_all(group, "t = torch.ones(1)\ndist.all_reduce(t)\nprint(kept == rank, t.item())") == ["True 2.0\n"] * 2
    if what == "backward":
        run_all(group, "net(torch.ones(2, 2)).sum().backward()")


def test_ranks_that_are_interrupted_together_report_the_same_sentence(make_group: MakeGroup, tmp_path: Path) -> None:
    """One of them closes its connections first: the collective of the other fails while it is interrupted."""
    group = make_group(3)
    reports = set()
    for number in range(4):
        started = [rank.start(HANGS["all_reduce"].replace("go", f"go {number}")) for rank in group[:2]]
        for rank in group[:2]:
            rank.wait_text(f"go {number}")
        for rank, execution_id in zip(group, started):
            rank.interrupt(execution_id)
        for rank, execution_id in zip(group, started):
            result = rank.result(execution_id)
            assert result.status == "interrupted"
            reports.add((result.error["ename"], result.error["evalue"], "jupyter_dist" in result.traceback))
            assert len(result.traceback) < 1000, result.traceback
        assert rejoin(group, tmp_path) == [0, 0, 0]
    assert [(name, ours) for name, _, ours in reports] == [("KeyboardInterrupt", False)], reports


SUBGROUPS = """
from torch.nn.parallel import DistributedDataParallel as DDP
pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
all_again = dist.new_group([0, 1, 2, 3], group_desc="all again")
cross = dist.new_group([0, 2], use_local_synchronization=True)  # the other ranks know nothing of it
from torch._C._distributed_c10d import FakeProcessGroup
def other(store, rank, size, timeout): return getattr(FakeProcessGroup, "_create_internal", FakeProcessGroup)(rank, size)
dist.Backend.register_backend("other", other, devices=["cuda"])
mixed = dist.new_group([0, 1, 2, 3], backend="cpu:gloo,cuda:other")  # as groups over NCCL, whose backends are two
gone = dist.new_group([0, 1])
if rank == 1: dist.destroy_process_group(gone)
of_pair = DDP(torch.nn.Linear(2, 2), process_group=pairs[rank // 2])
of_world, of_all = DDP(torch.nn.Linear(2, 2)), DDP(torch.nn.Linear(2, 2), process_group=all_again)
before = [dist.group.WORLD, pairs[rank // 2], all_again]
names = [(g.group_name, g.group_desc, dist.get_process_group_ranks(g)) for g in before]
"""
STILL = """
assert [dist.group.WORLD, pairs[rank // 2], all_again] == before
assert [(g.group_name, g.group_desc, dist.get_process_group_ranks(g)) for g in before] == names
for model, size in ((of_pair, 2), (of_world, 4), (of_all, 4)):
    model.zero_grad()
    model(torch.ones(1, 2) * (rank + 1)).sum().backward()
if rank in (0, 2):
    t = torch.ones(1)
    dist.all_reduce(t, group=cross)
    assert t.item() == 2
t = torch.ones(1)
dist.all_reduce(t, group=mixed)
assert t.item() == 4 and type(mixed._get_backend(torch.device("cuda"))) is FakeProcessGroup
print(of_pair.module.weight.grad[0, 0].item(), of_all.module.weight.grad[0, 0].item(), of_world.module.weight.grad[0, 0].item())
"""
USE = """
import os, time
def use():
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
"""
GROWS = f"""
until = time.monotonic() + {PATIENCE}
while (now := use()) and not (now[0] <= first[0] and now[1] <= first[1]) and time.monotonic() < until:
    time.sleep(0.02)
print(now[0] - first[0], now[1] - first[1]) if now[0] > first[0] or now[1] > first[1] else print("no")
"""


def test_subgroups_are_recreated_under_the_same_objects_again_and_again(make_group: MakeGroup, tmp_path: Path) -> None:
    group = make_group(4)
    run_all(group, USE + SUBGROUPS)
    right = [f"{pair} 2.5 2.5\n" for pair in (1.5, 1.5, 3.5, 3.5)]
    assert run_all(group, STILL) == right
    for number in range(4):
        assert rejoin(group, tmp_path) == [6] * 4
        assert run_all(group, STILL) == right
        run_all(group, "another = dist.new_group([1, 2])\nif rank in (1, 2): dist.destroy_process_group(another)")
        if number == 0:
            run_all(group, "first = use()")
    assert run_all(group, GROWS) == ["no\n"] * 4


DDP = """
import torch.nn as nn
torch.manual_seed(0)
net = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
def step():
    net.zero_grad()
    net(torch.full((2, 4), 1.0 + rank)).sum().backward()
    return net.module.weight.grad.sum().item()
print(step())
"""
# As a backend or a version of torch that is another one than those that were seen would.
OTHERS = {
    "refuses": """
from jupyter_dist.rank.collectives.revival import compat
def refuse(*arguments): raise RuntimeError("backend already registered")
compat.move_backends = refuse
""",
    "lacks": "from jupyter_dist.rank.collectives.revival import compat\ncompat.can_keep = lambda: False",
}


@pytest.mark.parametrize("how", OTHERS)
def test_where_objects_cannot_be_kept_the_default_group_and_ddp_continue(
    make_group: MakeGroup, tmp_path: Path, how: str
) -> None:
    group = make_group(2)
    before = run_all(group, DDP)
    run_all(group, OTHERS[how])
    for _ in range(2):
        rejoin(group, tmp_path)
        assert run_all(group, "print(step())") == before
        assert run_all(group, "t = torch.ones(1)\ndist.all_reduce(t)\nprint(t.item())") == ["2.0\n"] * 2


def test_the_search_for_models_runs_no_code_of_variables(make_group: MakeGroup, tmp_path: Path) -> None:
    group = make_group(2)
    run_all(group, "import os\nclass Ends:\n    __class__ = property(lambda self: os._exit(3))\nends = Ends()")
    assert rejoin(group, tmp_path) == [0, 0]


def test_broken_peer_reports_a_broken_group(make_group: MakeGroup) -> None:
    group = make_group(2)
    ids = [rank.start("print('go')\ndist.recv(torch.ones(1), src=1 - rank)") for rank in group]
    for rank in group:
        rank.wait_text("go")
    group[0].interrupt(ids[0])
    results = [rank.result(execution_id) for rank, execution_id in zip(group, ids)]
    assert [result.status for result in results] == ["interrupted", "error"]
    assert [result.reply["process_group"] for result in results] == ["broken", "broken"]


def test_a_computing_rank_keeps_its_connections(make_group: MakeGroup) -> None:
    group = make_group(2)
    execution_id = group[0].start("a = torch.rand(1500, 1500)\nprint('go')\nwhile True: a = a @ a")
    group[0].wait_text("go")
    group[0].interrupt(execution_id)
    assert group[0].result(execution_id).reply["process_group"] == "ok"
    run_all(group, "dist.barrier()")


def test_users_own_connection_is_left_alone(make_group: MakeGroup, tmp_path: Path) -> None:
    group = make_group(2)
    run_all(
        group,
        "import socket\na = socket.create_server(('127.0.0.1', 0))\nb = socket.create_connection(a.getsockname())\nc, _ = a.accept()",
    )
    execution_id = group[0].start("print('go')\ndist.barrier()")
    group[0].wait_text("go")
    group[0].interrupt(execution_id)
    group[0].result(execution_id)
    assert group[0].run("n = b.send(b'still here')\nprint(c.recv(99))").text() == "b'still here'\n"


def test_user_destroys_the_group(make_group: MakeGroup, tmp_path: Path) -> None:
    group = make_group(2)
    assert [rank.run("dist.destroy_process_group()").reply["process_group"] for rank in group] == ["none", "none"]
    failed = group[0].run("dist.init_process_group('nonsense', rank=0, world_size=2)")
    assert (failed.status, failed.reply["process_group"]) == ("error", "none")
    rejoin(group, tmp_path)
    run_all(group, "dist.barrier()")


def test_user_forms_it_again(make_group: MakeGroup, tmp_path: Path) -> None:
    group = make_group(2)
    run_all(group, "dist.destroy_process_group()")
    run_all(
        group,
        f"dist.init_process_group('gloo', init_method='file://{tmp_path}/own', rank=rank, world_size=2)\ndist.barrier()",
    )


def test_second_init_does_nothing(make_group: MakeGroup) -> None:
    group = make_group(2)
    result = group[0].run(
        "dist.init_process_group('gloo')\nfrom torch.distributed import init_process_group as init\ninit()"
    )
    assert result.status == "ok"
    assert result.text("stderr") == ""
    run_all(group, "dist.barrier()")


def test_rejoin_that_fails_is_told(rank: RankClient) -> None:
    answer = rank.answer(rank.post_rejoin("/nonexistent/folder/store"))
    assert answer["ok"] is False
    assert answer["error"]["message"]
    assert rank.run("print(1)").text() == "1\n"


@records_gloo
def test_a_collective_that_is_not_complete_is_known_from_the_flight_recorder(make_group: MakeGroup) -> None:
    """Where the stack does not tell: in C++, here in backward()."""
    group = make_group(2)
    run_all(group, "from torch.nn.parallel import DistributedDataParallel as DDP\nnet = DDP(torch.nn.Linear(2, 2))")
    assert group[0].answer(group[0].post("stack"))["collective"] is None
    execution_id = group[0].start(HANGS["backward"])
    group[0].wait_text("go")
    collective = until(lambda: group[0].answer(group[0].post("stack"))["collective"])
    assert collective["name"] == "all_reduce"
    again = group[0].answer(group[0].post("stack"))["collective"]
    assert again == collective
    group[0].interrupt(execution_id)
    assert group[0].result(execution_id).status == "interrupted"


def test_aborting_and_forgetting_find_all_they_need_in_this_torch(make_group: MakeGroup, tmp_path: Path) -> None:
    """The calls that free NCCL ranks, made on gloo, where torch's abort() does nothing: see docs/gpu.md."""
    group = make_group(2)
    run_all(group, "other = dist.new_group([0, 1])")
    code = (
        "from jupyter_dist.rank.collectives.aborting import nccl\n"
        "aborted = nccl.abort()\ndist.barrier()\nnccl.forget()\nprint(aborted, dist.is_initialized())"
    )
    assert run_all(group, code) == ["None False\n"] * 2
    rejoin(group, tmp_path)
    run_all(group, "dist.barrier()")


@records_gloo
def test_a_collective_whose_end_gloo_lost_is_left_and_a_new_group_formed_beside_it(
    make_group: MakeGroup, tmp_path: Path
) -> None:
    """What cannot be had at will is made here: breaking connections has no effect, as when none is left."""
    group = make_group(2)
    run_all(group, "kept = rank\nfrom jupyter_dist.rank.collectives.aborting.gloo_sockets import GlooSockets")
    assert group[0].run("GlooSockets.connections = lambda self: []").status == "ok"
    execution_id = group[0].start("print('go')\ndist.all_reduce(torch.ones(3))")
    group[0].wait_text("go")
    until(lambda: group[0].answer(group[0].post("stack"))["collective"] is not None)
    group[0].interrupt(execution_id)
    result = group[0].result(execution_id)
    assert (result.status, result.reply["process_group"]) == ("interrupted", "broken")
    assert "never completed" in result.traceback
    rejoin(group, tmp_path)
    assert run_all(group, "t = torch.ones(1)\ndist.all_reduce(t)\nprint(kept == rank, t.item())") == ["True 2.0\n"] * 2
    # torch's recorder learns of the end a moment after the waiter.
    until(lambda: group[0].answer(group[0].post("stack"))["collective"] is None)


WAKEUPS = """
import os, time

def wakeups():
    found = []
    for task in os.listdir('/proc/self/task'):
        with open(f'/proc/self/task/{task}/status') as file:
            status = file.read()
        if status.startswith('Name:\\tgloo_tcp_loop'):
            found.append(int(status.split('voluntary_ctxt_switches:')[1].split()[0]))
    return found

before, began = wakeups(), time.monotonic()
time.sleep(1)
after, seconds = wakeups(), time.monotonic() - began
"""


@names_threads
def test_an_idle_process_group_seldom_wakes_up(shared: RankClient) -> None:
    """gloo's event loop wakes up every 10 ms by itself; all ranks together were most of what an idle group costs."""
    assert shared.run(WAKEUPS).status == "ok"
    assert (
        shared.run("print(len(before) > 0, sum(after) - sum(before) <= len(before) * (10 + 40 * seconds))").text()
        == "True True\n"
    )
