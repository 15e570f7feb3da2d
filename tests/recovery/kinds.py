"""What ranks run in the matrix: a small model for each kind of parallelism, and a step of its training.

A cell on 4 ranks, which form a mesh of 2 x 2 ("dp", "tp"), on the notebook's `device`: tests/gpu runs it on GPUs. A step
returns its losses, to be compared bit for bit.
"""

# ruff: noqa: F821, PLW0603 - it is a cell, whose names are those of the notebook

import os
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DistributedSampler

warnings.simplefilter("ignore")
# With Python 3.12 and torch 2.9 to 2.11, models that were compiled crash the process when they are freed (docs/gpu.md).
if hasattr(torch._dynamo.config, "use_recursive_dict_tags_for_guards"):
    torch._dynamo.config.use_recursive_dict_tags_for_guards = False
rank = dist.get_rank()
mesh = init_device_mesh(device.type, (2, 2), mesh_dim_names=("dp", "tp"))
flat = init_device_mesh(device.type, (4,), mesh_dim_names=("all",))
pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
pair = pairs[rank // 2]
few, _ = dist.new_subgroups_by_enumeration([[0, 3], [1, 2]])


class Net(nn.Module):
    """Two layers; the first is computed again in backward()."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        y = checkpoint(lambda value: self.a(value).relu(), x, use_reentrant=False)
        if y.requires_grad:
            y.register_hook(in_the_middle)  # of backward(): the gradients of b are there, those of a are not
        return self.b(y)


def net():
    return Net().to(device)  # parameters are the same on every kind of device


fails = False


def in_the_middle(gradient):
    if fails:
        raise ValueError("in the middle of backward()")


def ddp(group=None):
    model = DistributedDataParallel(net(), process_group=group)
    return model, torch.optim.AdamW(model.parameters(), 0.1)


def zero():
    model = DistributedDataParallel(net())
    return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.1)


def fsdp1():
    model = FullyShardedDataParallel(net(), device_id=device)
    return model, torch.optim.AdamW(model.parameters(), 0.1)


def fsdp2(over=None):
    model = net()
    for layer in (model.a, model.b, model):
        fully_shard(layer, mesh=flat if over is None else over)
    return model, torch.optim.AdamW(model.parameters(), 0.1)


def tensor_parallel():
    model = parallelize_module(net(), mesh["tp"], {"a": ColwiseParallel(), "b": RowwiseParallel()})
    return model, torch.optim.AdamW(model.parameters(), 0.1)


def compiled(make):
    model, optimizer = make()
    return torch.compile(model, backend="eager"), optimizer


MAKE = {
    "ddp": ddp,
    "ddp of a subgroup": lambda: ddp(pair),
    "zero": zero,
    "fsdp1": fsdp1,
    "fsdp2": fsdp2,
    "hsdp": lambda: fsdp2(mesh),
    "fsdp2 of a submesh": lambda: fsdp2(mesh["dp"]),
    "tensor parallel": tensor_parallel,
    "compiled ddp": lambda: compiled(ddp),
    "compiled fsdp2": lambda: compiled(fsdp2),
}


def step(name, number):
    """Train a model on one batch; ranks of a tensor-parallel pair have the same."""
    model, optimizer = models[name]
    torch.manual_seed(number * 10 + (rank // 2 if name == "tensor parallel" else rank))
    x = torch.randn(4, 8).to(device)
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def pipeline(number):
    """One step of two stages, over a subgroup; the loss is known in the last one."""
    torch.manual_seed(5)
    layer = nn.Linear(8, 8).to(device)
    stage = PipelineStage(layer, dist.get_rank(pair), 2, device, group=pair)
    schedule = ScheduleGPipe(stage, 2, loss_fn=lambda output, target: (output - target).pow(2).mean())
    torch.manual_seed(number)
    x, losses = torch.randn(4, 8).to(device), []
    if dist.get_rank(pair) == 0:
        schedule.step(x)
    else:
        schedule.step(target=x, losses=losses)
    return [value.item() for value in losses] + [layer.weight.grad.sum().item()]


def others(number):
    """Collectives of every group, tensors on meshes, a checkpoint and a sampler."""
    found = []
    for group in (None, pair, few, mesh["tp"].get_group(), mesh.get_group("dp")):
        t = torch.ones(1, device=device) * (rank + number)
        dist.all_reduce(t, group=group)
        found.append(t.item())
    whole = distribute_tensor(torch.arange(16.0, device=device).reshape(4, 4) + number, mesh, [Shard(0), Replicate()])
    found.append(whole.redistribute(mesh, [Replicate(), Shard(1)]).full_tensor().sum().item())
    found.append(parts.full_tensor().sum().item())
    state = {"model": models["fsdp2"][0].state_dict()}
    dcp.save(state, checkpoint_id=os.path.join(place, f"{number}"))
    dcp.load(state, checkpoint_id=os.path.join(place, f"{number}"))
    found += list(DistributedSampler(range(16), shuffle=True, seed=number))
    gathered = [None] * 4
    dist.all_gather_object(gathered, rank)
    return found + gathered


def begin():
    """Make all models again, from the same parameters."""
    global models, parts, fails
    fails = False  # an earlier fault may have come in the middle of half_steps()
    parts = distribute_tensor(torch.arange(8.0, device=device).reshape(4, 2), mesh, [Shard(0), Shard(1)])
    torch._dynamo.reset()
    models = {name: make() for name, make in MAKE.items()}


def steps(number):
    """One step of everything."""
    done = {name: step(name, number) for name in MAKE}
    return {**done, "pipeline": pipeline(number), "others": others(number)}


def half_steps(number):
    """Leave every model in the middle of its backward()."""
    global fails
    fails = True
    for name in MAKE:
        try:
            step(name, number + 100)
        except ValueError:
            continue
        raise AssertionError(f"{name} did not fail")
    fails = False


# DDP sums over four ranks in the order of its buckets, which are those of a new model in the first step after a fault.
ROUNDED = ("ddp", "zero", "compiled ddp")


def differences(number):
    """Train everything; return what is not as in the undisturbed run."""
    found, right = steps(number), undisturbed[number]

    def same(name):
        return abs(found[name] - right[name]) < 1e-6 if name in ROUNDED else found[name] == right[name]

    return {name: (found[name], right[name]) for name in right if not same(name)}
