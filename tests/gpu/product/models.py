"""Models after a freed hang."""

from __future__ import annotations

from kit.lab import Lab, experiment

from .session import SYNC, WARM, session

MODELS = """
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
mesh = init_device_mesh(device.split(":")[0] if isinstance(device, str) else device.type, (dist.get_world_size(),), mesh_dim_names=("dp",))
torch.manual_seed(0)
sharded = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)).to(device)
for layer in sharded: fully_shard(layer, mesh=mesh)
fully_shard(sharded, mesh=mesh)
optimizer = torch.optim.AdamW(sharded.parameters(), 0.01)
ddp = nn.parallel.DistributedDataParallel(nn.Linear(64, 64).to(device))
x = torch.ones(8, 64, device=device)
"""


STEP_SHARDED = "loss = sharded(x).pow(2).mean(); loss.backward(); optimizer.step(); optimizer.zero_grad(); print('fsdp2', round(loss.item(), 6))"


STEP_DDP = "ddp(x).sum().backward(); print('ddp', round(ddp.module.weight.grad.sum().item(), 4))"


CURE = """
moved = 0
for module in sharded.modules():
    if hasattr(module, "_get_fsdp_state"):
        state = module._get_fsdp_state()
        for one in getattr(state, "_fsdp_param_groups", None) or [state._fsdp_param_group]:
            if one is not None:
                one.mesh_info.shard_process_group = mesh.get_group(); moved += 1
print("moved", moved)
"""


@experiment(
    90, "DDP and FSDP2 models after a freed hang: do they train on?", "both; if not FSDP2: after the cure by hand"
)
def models(lab: Lab) -> None:
    with session(lab, 2) as (made, group):
        made.run(group, WARM)
        made.run(group, MODELS, what="models", seconds=40)
        made.run(group, f"{STEP_SHARDED}\n{STEP_DDP}", what="a step of each")
        made.hang(group, f"ddp(x).sum().backward(); {SYNC}", "0", "a backward pass of DDP on rank 0 alone")
        made.run(group, STEP_DDP)
        failed = made.run(group, STEP_SHARDED, seconds=20)
        if failed is None or failed.state != "ok":
            made.run(group, CURE, what="cure")
            made.run(group, STEP_SHARDED)
        made.run(group, "p = next(sharded.parameters()); print(type(p).__name__, p.full_tensor().shape)")
