"""More hangs as public reports describe them, read after those of reported.py: for the bench. Each names its report."""

from __future__ import annotations

from .kinds import Hang, Innocent
from .reported import TRAINED

HANGS = [
    Hang(
        "Lightning-AI/pytorch-lightning#19106: rank 0 logs a key less than the others",
        "logs = {'loss': torch.ones(1), 'acc': torch.ones(1)}\nif rank: logs['extra'] = torch.ones(1)\nfor key in sorted(logs):\n    dist.all_reduce(logs[key])",
        "missing",
        "1-3",
        "0",
        "all_reduce",
    ),
    Hang(
        "meta-pytorch/torchrec#4149: two process groups in an order that differs between ranks",
        "def forward(): dist.all_to_all_single(torch.empty(2), torch.ones(2), group=shard)\ndef sync(): dist.all_reduce(torch.ones(1), group=replicate)\nfor call in ([forward, sync] if rank < 3 else [sync, forward]): call()",
        "order",
        "0-3",
        "",
        "different process groups",
        first="shard = dist.new_group([2, 3])\nreplicate = dist.new_group([0, 1, 2, 3])",
    ),
    Hang(
        "speechbrain/speechbrain#2401: rank 0 is in the broadcast of a checkpoint's name, the others still reduce gradients",
        "if rank == 0: dist.broadcast_object_list(['checkpoint'], 0)\nelse: model(torch.ones(1, 2)).sum().backward()",
        "mismatch",
        "0-3",
        "",
        "broadcast",
        first=TRAINED,
    ),
    Hang(
        "pytorch/pytorch#44353: a rank skips the batch for which it had no memory",
        "for step in range(4):\n    try:\n        if rank == 2 and step == 1: raise RuntimeError('CUDA out of memory')\n        model(torch.ones(1, 2)).sum().backward()\n    except RuntimeError as err:\n        if 'out of memory' not in str(err): raise",
        "missing",
        "0-1,3",
        "2",
        "backward",
        first=TRAINED,
    ),
    Hang(
        "horovod/horovod#3980: rank 1 has no more data, and says so by an exception",
        "batches = iter(range(2 if rank == 1 else 4))\nwhile True:\n    next(batches)\n    dist.all_reduce(torch.ones(2))",
        "missing",
        "0,2-3",
        "1",
        "StopIteration",
    ),
    Hang(
        "NVIDIA-NeMo/Megatron-Bridge#5283: the first stages fail, the second ones wait for what they send",
        "if rank < 2: raise MemoryError('the MoE needs 352 MiB')\ndist.recv(torch.empty(4), rank - 2)",
        "missing",
        "2-3",
        "0-1",
        "MemoryError",
    ),
    Hang(
        "ai-dynamo/aiconfigurator#1542: rank 0 cannot write its rows, and leaves out the barrier",
        "failed = False\ntry:\n    if rank == 0: open('/proc/none/rows', 'w')\nexcept OSError:\n    failed = True\nfinally:\n    if not failed: dist.barrier()",
        "missing",
        "1-3",
        "0",
        "barrier",
    ),
    Hang(
        "snowflakedb/ArcticTraining#233: rank 0 fails while it loads data, the others are at a barrier",
        "def load(): return open('/no/such/data.json').read()\nif rank == 0: data = load()\ndist.barrier()",
        "missing",
        "1-3",
        "0",
        "FileNotFoundError",
    ),
    Hang(
        "s-JoL/Open-Llama#47: rank 0 waits for a service of metrics that does not answer",
        "import socket\ndef init():\n    listening = socket.create_server(('127.0.0.1', 0))\n    talking = socket.create_connection(listening.getsockname())\n    return talking.recv(1)\nif rank == 0: init()\ndist.barrier()",
        "busy",
        "1-3",
        "0",
        "rank 0 is at line 5",
        verdict="waits",
    ),
    Hang(
        "Sense-X/UniFormer#33: rank 0 alone evaluates the model that broadcasts its buffers",
        "if rank == 0: normed(torch.ones(4, 2))",
        "missing",
        "0",
        "1-3",
        "rank",
        first="normed = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)))\nnormed(torch.ones(4, 2)).sum().backward()",
    ),
]

INNOCENT: list[Innocent] = []
