"""Process groups of user code beside those of the ranks: of forked children, with timeouts, and freed after their end."""

from __future__ import annotations

import re

import pytest


@pytest.fixture(autouse=True)
def _formed(ranks):
    yield
    ranks.run("if not dist.is_initialized(): dist.init_process_group()")


CHILDREN = """
import multiprocessing as mp, os, tempfile

def job(number, path, destroys):
    assert dist.is_initialized() and dist.get_world_size() == 2  # as a worker of a DataLoader may ask
    if destroys: dist.destroy_process_group()
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=number, world_size=3)
    t = torch.ones(1)
    dist.all_reduce(t)
    late = dist.new_group([0, 1, 2], timeout=__import__("datetime").timedelta(seconds=0.2))
    if number == 0:
        try: dist.barrier(late)  # nobody else calls it
        except RuntimeError: t += 0
    dist.destroy_process_group()
    queue.put(t.item())

queue = mp.get_context("fork").SimpleQueue()
for destroys in (False, True):
    path = tempfile.mktemp()
    children = [mp.get_context("fork").Process(target=job, args=(i, path, destroys)) for i in range(3)]
    [child.start() for child in children]
    [child.join(30) for child in children]
    print([child.exitcode for child in children], [queue.get() for child in children if child.exitcode == 0])
    [child.kill() for child in children]
dist.barrier()
"""


def test_forked_children_form_process_groups_of_their_own(ranks):
    """On both ranks at once; theirs, and what it is connected to, stay as they are."""
    ranks.run("world = dist.group.WORLD")
    assert ranks.run(CHILDREN) == ["[0, 0, 0] [3.0, 3.0, 3.0]\n" * 2] * 2
    assert (
        ranks.agree("t = torch.ones(1)\ndist.all_reduce(t)\nprint(t.item(), dist.group.WORLD is world)") == "2.0 True"
    )


LAUNCHED = """
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

def work():
    dist.init_process_group("gloo")
    t = torch.ones(1)
    dist.all_reduce(t)
    return t.item()

config = LaunchConfig(1, 1, 2, rdzv_backend="c10d", rdzv_endpoint="127.0.0.1:0", start_method="fork", max_restarts=0, run_id=f"of-{rank}")
print(sorted(elastic_launch(config, work)().items()))
"""


def test_a_launcher_that_forks_forms_a_process_group(ranks):
    assert ranks.run(LAUNCHED, (0,)) == ["[(0, 2.0), (1, 2.0)]\n"]
    ranks.run("dist.barrier()")


SHOWN = "print(dist.group.WORLD._get_backend(torch.device('cpu')).options._timeout)"


def test_a_timeout_is_taken_over_and_kept_when_the_process_group_is_recreated(ranks):
    ranks.run("from datetime import timedelta")
    said = ranks.cell("dist.init_process_group('gloo', timeout=timedelta(hours=2))")
    assert (said.state, said.err) == ("ok", ["", ""])
    assert ranks.agree(SHOWN) == "2:00:00"
    ranks.agent.request("reform")
    assert ranks.agree(SHOWN) == "2:00:00"
    said = ranks.cell("dist.init_process_group('nccl', timeout=timedelta(seconds=0.5), group_name='mine')")
    assert said.err[0] == (
        "This rank already has a process group (backend='gloo'): init_process_group() set nothing but the timeout.\n"
        "init_process_group() ignored group_name: there is a process group. Call destroy_process_group() on all ranks before.\n"
    )
    assert ranks.cell("dist.barrier()", (0,)).state == "error"
    assert re.search(r"Timed out waiting \d{1,3}ms", ranks.errors())  # what is left of the 500 ms
    # One that user code creates has what it asks for: nothing.
    ranks.run("dist.destroy_process_group()\ndist.init_process_group()")
    assert ranks.agree(SHOWN) == "0:30:00"


FREED = """
from torch.nn.parallel import DistributedDataParallel as DDP

def train():
    net = DDP(torch.nn.Linear(20, 1))
    for _ in range(64):
        net.zero_grad()
        net(torch.rand(32, 20)).sum().backward()
    dist.destroy_process_group()

for _ in range({rounds}):
    train()
    dist.init_process_group()
"""


def test_models_are_freed_after_their_process_group(ranks):
    """torch joins gloo's threads with the GIL held then: without our help, one round in five hangs."""
    rounds = 6
    for _ in range(4):
        ranks.run(FREED.format(rounds=rounds))
    # A model refers to itself: Python frees it when it next looks for such objects, and we its backend when a cell begins.
    ranks.run("import gc\ngc.collect()")
    threads = "print(len([t for t in __import__('os').listdir('/proc/self/task') if 'gloo' in open(f'/proc/self/task/{t}/comm').read()]))"
    assert [int(number) < 2 * rounds for number in ranks.run(threads)] == [True, True]
