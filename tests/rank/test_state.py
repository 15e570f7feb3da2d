"""Names of ranks, saved and restored in new ranks: models over process groups go on with the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rankclient import RankClient

TRAINS = """
from torch.nn.parallel import DistributedDataParallel
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
torch.manual_seed(0)
pair = dist.new_group([0, 1])
lone = dist.new_group([1])
mesh = init_device_mesh('cpu', (world_size,), mesh_dim_names=('dp',))
ddp = DistributedDataParallel(torch.nn.Linear(4, 1), process_group=pair)
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
fully_shard(net[0], mesh=mesh)
fully_shard(net, mesh=mesh)
optimizer = torch.optim.Adam([*net.parameters(), *ddp.parameters()])
part = distribute_tensor(torch.arange(8.), mesh, [Shard(0)])
def step():
    optimizer.zero_grad()
    given = torch.rand(2, 4) + rank
    loss = net(given).square().mean() + ddp(given).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()
step()
"""
SAVES = """
from jupyter_dist.rank.state import reading, writing
save = writing.write_namespace(get_ipython(), {0!r}, {0!r}, writing.WriteOptions(rank, world_size, durable=False))
print(save.skipped, save.notes)
"""
RESTORES = """
from jupyter_dist.rank.state import reading
options = reading.ReadOptions(rank, world_size)
loaded = reading.load(get_ipython(), {0!r}, f'{0}/rank-{{rank}}.json', options)
print(loaded.commit().failed)
"""
GOES_ON = "print([step() for _ in range(3)], part.full_tensor().sum().item())"
IS_WHOLE = """
ones = torch.ones(1)
dist.all_reduce(ones, group=pair)
print(int(ones), dist.get_process_group_ranks(pair), mesh is part.device_mesh, ddp.process_group is pair)
print(optimizer.param_groups[0]['params'][0] is net[0].weight, lone == dist.GroupMember.NON_GROUP_MEMBER)
"""


def run_all(ranks: list[RankClient], code: str) -> list[str]:
    results = [rank.result(number) for rank, number in [(rank, rank.start(code)) for rank in ranks]]
    assert all(result.status == "ok" for result in results), [result.events for result in results]
    return [result.text() for result in results]


def test_models_over_process_groups_go_on_in_new_ranks(
    make_group: Callable[..., list[RankClient]], tmp_path: Path
) -> None:
    folder = str(tmp_path / "saves")
    (tmp_path / "saves").mkdir()
    before, after = make_group(2), make_group(2)
    run_all(before, TRAINS)
    assert run_all(before, SAVES.format(folder)) == ["[] []\n"] * 2
    expected = run_all(before, GOES_ON)
    for _ in range(2):  # the second time with the names of the first
        assert run_all(after, RESTORES.format(folder)) == ["[]\n"] * 2
        lines = [text.splitlines() for text in run_all(after, IS_WHOLE)]
        assert [line[0] for line in lines] == ["2 [0, 1] True True"] * 2
        assert [line[1] for line in lines] == ["True True", "True False"]  # rank 0 is no member
        assert run_all(after, GOES_ON) == expected
