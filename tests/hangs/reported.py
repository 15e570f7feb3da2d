"""Hangs as public reports describe them, read after the rules had been written. Each names its report."""

from __future__ import annotations

from .kinds import ONES, Hang, Innocent

SHARDED = (
    "from torch.distributed.fsdp import fully_shard\nsharded = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))\n"
    "for part in [*sharded, sharded]: fully_shard(part)\nsharded(torch.ones(1, 4))"
)
TRAINED = "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))"

HANGS = [
    Hang(
        "PrimeIntellect-ai/prime-rl#2515: validation of FSDP with another number of batches on each rank",
        "with torch.no_grad():\n    for _ in range(2 + (rank == 3)):\n        sharded(torch.ones(1, 4))",
        "missing",
        "3",
        "0-2",
        "line 3 of cell",
        first=SHARDED,
    ),
    Hang(
        "alan-turing-institute/autocast#386: a barrier of the save on rank 0 only, before one of all",
        "def save_checkpoint():\n    dist.barrier()\nif rank == 0:\n    save_checkpoint()\ndist.barrier()",
        "missing",
        "0",
        "1-3",
        "line 5 of cell",
    ),
    Hang(
        "KempnerInstitute/KempnerForge#49: rank 0 does not see the file, the others load",
        "if rank:\n    dist.broadcast_object_list([None], 0)",
        "missing",
        "1-3",
        "0",
        "broadcast_object_list",
    ),
    Hang(
        "KempnerInstitute/KempnerForge#104: the barrier and the collective of a saving thread in another order",
        "calls = [lambda: dist.all_gather_object([None] * 4, rank), dist.barrier]\nfor call in calls[::-1] if rank == 0 else calls:\n    call()",
        "mismatch",
        "0-3",
        "",
        "barrier",
    ),
    Hang(
        "modelscope/ms-swift#10183: a rank without audio is at all_reduce, the others at a broadcast",
        f"dist.all_reduce({ONES}) if rank == 0 else dist.broadcast(torch.ones(64), 0)",
        "mismatch",
        "0-3",
        "",
        "all_reduce",
    ),
    Hang(
        "Lightning-AI/pytorch-lightning#9851: one batch more on one rank",
        "for _ in range(3 + (rank == 1)):\n    model(torch.ones(1, 2)).sum().backward()",
        "missing",
        "1",
        "0,2-3",
        "backward",
        first=TRAINED,
    ),
    Hang(
        "Lightning-AI/pytorch-lightning#10947: the best score differs, and only some ranks save",
        "score = 1.0 if rank == 2 else 0.5\nif score > 0.7:\n    dist.barrier()",
        "missing",
        "2",
        "0-1,3",
        "idle",
    ),
    Hang(
        "horovod/horovod#100: tensors that a subset of ranks submits",
        f"if rank in (1, 2): works = [dist.all_reduce({ONES}, async_op=True) for _ in range(3)]\nif rank in (1, 2): works[-1].wait()",
        "missing",
        "1-2",
        "0,3",
        "all_reduce",
    ),
    Hang(
        "NVIDIA/nccl#395: a forked process waits for a lock that was held at the fork",
        "import multiprocessing, threading\nlock = threading.Lock()\nif rank == 1:\n    with lock:\n"
        "        child = multiprocessing.get_context('fork').Process(target=lock.acquire, daemon=True); child.start()\n"
        "    child.join()\ndist.barrier()",
        "busy",
        "0,2-3",
        "1",
        "rank 1 is at line 6 of cell",
        verdict="waits",
    ),
    Hang(
        "huggingface/accelerate#3861: only the main process gathers the metrics of validation",
        "metric = torch.ones(4)\nif rank == 0: dist.all_gather([torch.ones(4) for _ in range(4)], metric)",
        "missing",
        "0",
        "1-3",
        "all_gather",
    ),
]

INNOCENT = [
    Innocent(
        "instructlab/training#566: rank 0 saves for long, the others are in the next forward",
        "if rank == 0:\n    import time; time.sleep(3)\nmodel(torch.ones(1, 2)).sum().backward()",
        first=TRAINED,
    ),
    Innocent(
        "intel/ipex-llm#3626: uneven batches under Join",
        "from torch.distributed.algorithms.join import Join\nimport time\nwith Join([model]):\n    for _ in range(2 + rank):\n"
        "        time.sleep(0.5); model(torch.ones(1, 2)).sum().backward()",
        first=TRAINED,
    ),
]
