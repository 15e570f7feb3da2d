"""Models of FSDP2 in a group of another size: as in a new group of that size that loads a full checkpoint."""

from libraries import FSDP as LIBRARIES  # noqa: F401 (of the groups)

# As in torch's tutorial: blocks of equal shapes, each with the default mesh, which is another object each time.
MODEL = """
import torch.nn as nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
torch.manual_seed(7)
blocks = [nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True) for _ in range(2)]
net = nn.Sequential(nn.Embedding(11, 8), *blocks, nn.Linear(8, 8), nn.Linear(8, 8))
for block in (*blocks, net[3]):
    fully_shard(block)
fully_shard(net)
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, amsgrad=True)
def step():
    optimizer.zero_grad()
    loss = net(torch.arange(11)[None]).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()
"""
FULL = "StateDictOptions(full_state_dict=True, cpu_offload=True)"
WRITE = f"full = get_state_dict(net, optimizer, options={FULL})\nif rank == 0: torch.save(full, {{path!r}})\ndel full"
READ = f"model, moments = torch.load({{path!r}})\nset_state_dict(net, optimizer, model_state_dict=model, optim_state_dict=moments, options={FULL})"
LOOK = (
    "([step() for _ in range(2)], [p.full_tensor().tolist() for p in net.parameters()], "
    "[s['max_exp_avg_sq'].full_tensor().tolist() for s in optimizer.state.values()], net(torch.arange(11)[None]).tolist())"
)


def test_after_every_resize_it_trains_on_as_a_new_group_with_a_full_checkpoint(client, tmp_path):
    path = str(tmp_path / "full.pt")
    group = client.start("resharded", num_ranks=2, accelerator="cpu")
    group.run(f"{MODEL}\nstep(), step()", check=True)
    for size in (3, 2):
        group.run(WRITE.format(path=path), check=True)
        resized = group.resize(size).model["resized"]
        assert (resized["error"], resized["again"]) == (None, [])
        new = client.start(f"new-{size}", num_ranks=size, accelerator="cpu")
        new.run(f"{MODEL}\n{READ.format(path=path)}", check=True)
        assert group.gather(LOOK) == new.gather(LOOK)
        new.shutdown()
    group.shutdown()
