"""Dead ranks that are replaced with variables: of a save, or copied from the other ranks; again and again."""

import re

import pytest
from libraries import FSDP as LIBRARIES  # noqa: F401 (of the groups)
from waits import until

from jupyter_dist.client import JupyterDistError
from jupyter_dist.protocol.operations import BY_NAME
from jupyter_dist.protocol.schemas import path_fields
from jupyter_dist.protocol.wire.requests import ReplaceRequest

TRAIN = """
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP
torch.manual_seed(7)
model = DDP(nn.Linear(4, 2))
mesh = init_device_mesh("cpu", (world_size,))
sharded = nn.Linear(6, 6)
fully_shard(sharded, mesh=mesh)
optimizers = [torch.optim.AdamW(model.parameters(), lr=0.1)]
its_own = torch.optim.AdamW(sharded.parameters(), lr=0.1)
some = dist.new_group([0, 2])
mine = {"rank": rank}
def step():
    x = torch.randn(3, 4) + rank
    loss = model(x).square().mean() + sharded(torch.ones(2, 6) * rank).square().mean()
    for one in (*optimizers, its_own): one.zero_grad()
    loss.backward()
    for one in (*optimizers, its_own): one.step()
    total = loss.detach().clone()
    if rank != 1: dist.all_reduce(total, group=some)
    return total.item()
first = [step() for _ in range(2)]
"""
GO_ON = "losses = [step() for _ in range(3)]\nassert model.module.weight is next(model.parameters())"


@pytest.fixture(scope="module")
def trio(client):
    return client.start("trio", num_ranks=3, accelerator="cpu")


def without(group, rank):
    """The group, of which this rank has just been killed."""
    group.kill(rank)
    until(lambda: group.status().state == "degraded")
    return group


def test_models_train_on_bit_for_bit_with_ranks_that_have_their_part_of_a_save_again_and_again(trio, folder):
    trio.run(TRAIN, check=True)
    trio.save("middle", folder=folder)
    trio.run(GO_ON, check=True)
    losses, weights = trio.gather("losses"), trio.gather("sharded.weight.to_local().tolist()")
    for rank in (1, 2, 0):
        trio.restore("middle", folder=folder)
        replaced = without(trio, rank).replace("save").model["replaced"]
        assert f"Rank {rank} was replaced: it has its variables of the save 'middle' of " in trio.status().note
        assert (replaced["ranks"], replaced["save"], replaced["error"]) == (str(rank), "middle", None)
        assert {"model", "sharded", "optimizers", "step", "mine"} <= set(replaced["names"])
        assert trio.gather("mine['rank'] == rank == dist.get_rank()") == dict.fromkeys(range(3), True)
        trio.run(GO_ON, check=True)
        assert trio.gather("losses") == losses
        assert trio.gather("sharded.weight.to_local().tolist()") == weights
    assert trio.status().note is None  # which ends with the next cell


ALIKE = """
from torch.nn.parallel import DistributedDataParallel as DDP
torch.manual_seed(7)
model = DDP(torch.nn.Linear(4, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
def step():
    optimizer.zero_grad(); model(torch.ones(3, 4) * rank).square().mean().backward(); optimizer.step()
    return model.module.weight.tolist()
table = torch.arange(4)
alias = table[1:]
even = dist.new_group([0, 1, 2])
"""
DIVIDED = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
mesh = init_device_mesh("cpu", (world_size,))
sharded = distribute_tensor(torch.arange(6.0), mesh, [Shard(0)])
wide = torch.nn.Linear(6, 6)
fully_shard(wide, mesh=mesh)
wide(torch.ones(2, 6)).sum().backward()
"""


def test_copies_have_what_the_others_have_alike_and_the_rest_is_named_again_and_again(trio):
    trio.restart()
    trio.run(ALIKE, check=True)
    trio.run(DIVIDED, check=True)
    trio.run("mine = {'rank': rank}")
    for rank in (1, 2, 0):
        replaced = without(trio, rank).replace("copy").model["replaced"]
        # The model shares the process group with what is divided, and the mesh is not divided itself.
        assert {"table", "alias", "model", "optimizer", "even", "step", "mesh"} <= set(replaced["names"])
        lacking = " ".join(replaced["again"])
        assert re.search(
            r"sharded[\w, ]* is divided among the ranks, and lacks the part of the rank that died", lacking
        )
        assert re.search(r"mine[\w, ]* differs between the other ranks", lacking)
        trio.run("assert 'mine' not in globals() and alias.data_ptr() == table[1:].data_ptr()", str(rank), check=True)
        if "drift" in BY_NAME:
            assert not [cell for cell in trio.drift().offered if "table" in cell.code]
        trio.run("weights = step(); t = torch.tensor(rank); dist.all_reduce(t, group=even)", check=True)
        weights = trio.gather("weights, t.item()")
        assert weights[0] == weights[1] == weights[2]
        trio.run(DIVIDED + "mine = {'rank': rank}", check=True)


@pytest.mark.part("drift")
def test_a_rank_with_its_variables_of_a_save_catches_up_from_there(group, folder):
    group.run("x = 1")
    group.save("early", folder=folder)
    group.run("y = x + 1")
    for _ in range(2):
        without(group, 1).replace("save", save="early", folder=folder)
        assert group.gather("'y' in globals(), x") == {0: (True, 1), 1: (False, 1)}
        assert [step.code for step in group.drift().offered] == ["y = x + 1"]
        group.catch_up()
        assert group.gather("y") == {0: 2, 1: 2}
    without(group, 1).replace()
    assert [step.code for step in group.drift().offered] == ["x = 1", "y = x + 1"]
    assert "Rank 1 was replaced: its variables are gone" in group.status().note
    group.restore("early", folder=folder)
    assert group.status().note is None


def test_a_replacement_without_its_source_is_refused_and_changes_nothing(group, folder):
    group.run("x = [rank]\ny = 2")
    without(group, 1)
    with pytest.raises(JupyterDistError, match=r"Only rank 0 is left: .* others='copy'"):
        group.replace("copy")
    with pytest.raises(JupyterDistError, match="There is no save 'none'"):
        group.replace("save", save="none", folder=folder)
    assert group.status().state == "degraded"
    names = group.replace("copy", others="copy").model["replaced"]["names"]
    assert {"x", "y"} <= set(names)
    assert group.gather("x, y") == {0: ([0], 2), 1: ([0], 2)}


def test_the_folder_is_a_path_which_clients_make_absolute():
    assert path_fields(ReplaceRequest) == ["folder"]
