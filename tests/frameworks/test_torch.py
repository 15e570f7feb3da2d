"""Plain torch.distributed: DDP, FSDP2, and scripts that form and destroy the process group themselves."""

from __future__ import annotations

import pytest

NET = """
import torch.nn as nn
torch.manual_seed(rank)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
"""
STEP = """
for _ in range(2):
    loss = net(torch.full((4, 8), 1.0 + rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.fixture(autouse=True)
def _formed(ranks):
    yield
    ranks.run("if not dist.is_initialized(): dist.init_process_group()")


def test_ddp(ranks):
    ranks.run(f"""{NET}
net = nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), 0.01)
""")
    for _ in range(2):  # the same cell again
        ranks.run(STEP)
        assert ranks.agree("print(sum(p.sum() for p in net.parameters()).item())")


def test_fsdp2(ranks):
    ranks.run(f"""{NET}
from torch.distributed.fsdp import fully_shard
for layer in (net[0], net[2], net):
    fully_shard(layer)
optimizer = torch.optim.SGD(net.parameters(), 0.01)
{STEP}""")
    assert (
        ranks.run("print(type(net[0].weight).__name__, tuple(net[0].weight.to_local().shape))")
        == ["DTensor (8, 8)\n"] * 2
    )
    assert ranks.agree("print(sum(p.full_tensor().sum() for p in net.parameters()).item())")


def test_a_second_init_does_nothing_and_says_what_differs(ranks):
    said = ranks.cell("import torch.distributed as td\ntd.init_process_group('nccl')\ntd.barrier()")
    assert said.state == "ok"
    told = "This rank already has a process group (backend='gloo'): init_process_group() did nothing.\n"
    assert said.err == [told] * 2


@pytest.mark.parametrize("arguments", ["", "'gloo', rank=rank, world_size=2", "backend='cpu:gloo,cuda:nccl'"])
def test_a_second_init_for_what_is_there_is_quiet(ranks, arguments):
    said = ranks.cell(f"dist.init_process_group({arguments})")
    assert (said.state, said.err) == ("ok", ["", ""])


@pytest.mark.parametrize(
    "arguments",
    ["", "'gloo', init_method='env://'", "backend='gloo', rank=rank, world_size=world_size", "'cpu:gloo'"],
)
def test_a_script_forms_and_destroys_the_process_group(ranks, arguments):
    script = f"""
dist.destroy_process_group()
dist.init_process_group({arguments})
t = torch.ones(1)
dist.all_reduce(t)
print(t.item(), dist.get_world_size())
dist.destroy_process_group()
dist.init_process_group({arguments})
dist.barrier()
"""
    assert [ranks.agree(script) for _ in range(2)] == ["2.0 2"] * 2
    # The store is ours: nothing listens beyond loopback.
    assert ranks.agree("print(type(dist.distributed_c10d._get_default_store()).__name__)") == "PrefixStore"
    assert (
        ranks.agree("print(type(dist.distributed_c10d._get_default_store().underlying_store).__name__)") == "FileStore"
    )


def test_a_destroyed_process_group_is_told_and_formed_anew_on_request(ranks):
    ranks.run("kept = rank + 1\ndist.destroy_process_group()", (1,))
    ranks.wait_note("Rank 1 destroyed the process group")
    ranks.run("dist.destroy_process_group()", (0,))
    ranks.wait_note("Ranks 0-1 destroyed the process group")
    assert ranks.cell("dist.barrier()").state == "error"
    ranks.agent.request("reform")
    ranks.wait_note("re-created")  # until a cell has run
    assert ranks.agree("t = torch.ones(1)\ndist.all_reduce(t)\nprint(t.item())") == "2.0"
    assert ranks.run("print(kept)", (1,)) == ["2\n"]


def test_ranks_meet_again_although_one_came_early_and_gave_up(ranks):
    ranks.run("dist.destroy_process_group()")
    limit = "import datetime\nlimit = datetime.timedelta(seconds=0.3)\n"
    assert ranks.cell(f"{limit}dist.init_process_group(timeout=limit)", (1,)).state == "error"
    assert "Rank 0 did not call init_process_group() within 0.3 s." in ranks.errors()
    assert ranks.cell(f"{limit}dist.init_process_group(timeout=limit)", (0,)).state == "error"
    assert ranks.agree("dist.init_process_group()\nt = torch.ones(1)\ndist.all_reduce(t)\nprint(t.item())") == "2.0"


@pytest.mark.parametrize("rank", [0, 1])
def test_an_interrupt_ends_the_wait_for_the_others(ranks, rank):
    ranks.run("dist.destroy_process_group()")
    waiting = ranks.agent.submit("print('go')\ndist.init_process_group()", [rank])
    ranks.agent.wait(lambda: ranks.agent.text(rank, waiting) == "go\n")
    ranks.agent.request("interrupt", ranks=[rank])
    assert ranks.said(waiting).state == "interrupted"
    ranks.run("dist.init_process_group()\ndist.barrier()")
