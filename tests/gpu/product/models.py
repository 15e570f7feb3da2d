"""Models after a freed hang, and every kind of parallelism after each kind of fault."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from kit.lab import Lab, experiment

from .session import SYNC, WARM, Session, messages, session, shown

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


# Where KIT_CRASHES names a folder, a rank that crashes writes its stacks there, in C++ too.
WATCHED = """
import os as _os, torch as _torch
if _os.environ.get("KIT_CRASHES"):
    _os.dup2(_os.open(_os.path.join(_os.environ["KIT_CRASHES"], f"{_os.getpid()}.txt"), _os.O_CREAT | _os.O_WRONLY | _os.O_APPEND), 2)
    _torch._C._set_print_stack_traces_on_fatal_signal(True)
    _os.write(2, (f"rank {_os.environ.get('RANK')} RAS {_os.environ.get('NCCL_RAS_ENABLE')} "
                  f"CHECK {_os.environ.get('MALLOC_CHECK_')}\\n").encode())
"""

USED = """
import resource as _r
print(len(_os.listdir("/proc/self/fd")), max(map(int, _os.listdir("/proc/self/fd"))), len(_os.listdir("/proc/self/task")), _r.getrlimit(_r.RLIMIT_NOFILE),
      len(dist.distributed_c10d._world.pg_map))
"""

NUM_KINDS_RANKS = 4
LEAST_ROUND_SECONDS = 8.0


@experiment(240, "The kinds of tests/recovery: trained undisturbed, then a freed hang, a failed rank, a replaced rank, in turn.",
            "no differences after any of them")  # fmt: skip
def recovery(lab: Lab) -> None:
    path = Path(os.environ.get("KIT_CHECKOUT", os.getcwd())) / "tests" / "recovery" / "kinds.py"
    if not path.exists():
        lab.say(skipped=f"{path} does not exist")
        return
    kinds = f"{path.read_text()}\nplace = {str(lab.folder)!r}\n"
    kinds = WATCHED + kinds
    with session(lab, NUM_KINDS_RANKS) as (made, group):
        made.run(group, kinds, what="the kinds")
        undisturbed = "undisturbed = [steps(number) for number in range(4)]"
        if not _succeeded(made.run(group, f"begin()\n{undisturbed}", seconds=90, what="undisturbed")):
            return
        # The numbers themselves repeat: without a fault, a second run has no differences.
        made.run(group, "begin()\nprint([differences(number) for number in range(2)])", what="without a fault")
        faults = (_hang, _failed_rank, _replaced_rank)
        if os.environ.get("KIT_ORDER") == "deaths":
            faults = (_replaced_rank, _hang, _replaced_rank)
        for number in range(18):
            if lab.left < LEAST_ROUND_SECONDS or group.status().state != "ready":
                lab.say(rounds=number)
                break
            begun = time.monotonic()
            faults[number % 3](lab, made, group, number // 3, kinds)
            made.run(group, USED, what="descriptors and threads")
            lab.say(
                round=number // 3, fault=faults[number % 3].__name__, round_seconds=round(time.monotonic() - begun, 2)
            )


def _succeeded(result: Any) -> bool:
    return result is not None and result.state == "ok"


def _compare(made: Session, group: Any, label: str, number: int) -> None:
    made.run(group, f"print(differences({number}))", what=f"differences {label}", seconds=40)


def _hang(lab: Lab, made: Session, group: Any, round_: int, kinds: str) -> None:
    made.run(group, "begin()", what="models made again")
    _compare(made, group, f"before hang {round_}", 0)
    made.hang(group, "half_steps(0)\nif rank == 0: dist.barrier()", "all", f"half steps, round {round_}")
    _compare(made, group, f"after hang {round_}", 1)


def _failed_rank(lab: Lab, made: Session, group: Any, round_: int, kinds: str) -> None:
    made.run(group, "begin()", what="models made again")
    _compare(made, group, f"before failure {round_}", 0)
    kind = ("fsdp2", "ddp", "fsdp1")[round_ % 3]
    made.hang(
        group, f"if rank == 1: raise RuntimeError('a bug')\nstep({kind!r}, 100)\n{SYNC}", "all", f"failure in {kind}"
    )
    _compare(made, group, f"after failure {round_}", 1)


def _replaced_rank(lab: Lab, made: Session, group: Any, round_: int, kinds: str) -> None:
    killed = (3, 2, 3)[round_ % 3]
    made.run(
        group, "begin()\nof_all = [None] * 4\ndist.all_gather_object(of_all, undisturbed)", what="models made again"
    )
    _compare(made, group, f"before death {round_}", 0)
    execution = group.submit(f"if rank != {killed}: dist.barrier()\n{SYNC}")
    time.sleep(1)
    asked = time.monotonic()
    os.kill(group.status().ranks[killed].pid, 9)
    with lab.step("the survivors' cell") as found:
        found.update(shown(made.ended(group, execution, 25)))
        found["seconds_after_the_death"] = round(time.monotonic() - asked, 2)
        found["ranks"] = messages(group)
    with lab.step("replace") as found:
        group.replace()
        found["note"] = group.model["note"]
    made.run(group, "print(step('ddp of a subgroup', 1) == undisturbed[1]['ddp of a subgroup'])", "0-1",
             what="a model of the living alone")  # fmt: skip
    given = "given = [globals().get('of_all')]\ndist.broadcast_object_list(given, 0)\nof_all = given[0]"
    made.run(group, f"{kinds}\n{given}\nundisturbed = of_all[rank]\nbegin()", what="all models made again", seconds=90)
    _compare(made, group, f"after death {round_}", 0)
