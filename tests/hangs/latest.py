"""Hangs as public reports describe them, read after those of later.py: for the bench. Each names its report."""

from __future__ import annotations

from .kinds import Hang, Innocent
from .reported import SHARDED

HANGS = [
    Hang(
        "deepspeedai/DeepSpeed#8262: a rank ends its text, and is in the next model while the others still generate",
        "lengths = [3, 5, 5, 5]\nwith torch.no_grad():\n    for token in range(lengths[rank]):\n        sharded(torch.ones(1, 4))\n    teacher(torch.ones(1, 4))",
        "missing",
        "1-3",
        "0",
        "in FSDP",
        first=f"{SHARDED}\nteacher = fully_shard(torch.nn.Linear(4, 4))\nteacher(torch.ones(1, 4))",
    ),
    Hang(
        "dylanyunlon/Neuron_SP#154: a rank skips its step, and is at the norm of the next one",
        "def step(skip):\n    norm = torch.ones(1)\n    dist.all_reduce(norm)\n    if not skip:\n        dist.reduce_scatter_tensor(torch.empty(2), torch.ones(8))\nfor number in range(3):\n    step(skip=rank == 1 and number == 1)",
        "mismatch",
        "0-3",
        "",
        "reduce_scatter",
    ),
    Hang(
        "OpenTSLM/OpenTSLM#49: gradients are averaged where a rank has them, and one rank has not used a part",
        "parts = [torch.nn.Linear(4, 4) for _ in range(2)]\nused = parts if rank != 2 else parts[:1]\nout = torch.ones(1, 4)\nfor part in used: out = part(out)\nout.sum().backward()\nfor part in parts:\n    for p in part.parameters():\n        if p.grad is not None:\n            dist.all_reduce(p.grad)",
        "missing",
        "0-1,3",
        "2",
        "line 9 of cell",
    ),
    Hang(
        "huggingface/huggingface_hub#3944: a lock file that a crashed process has left, for which all but rank 0 look",
        "import pathlib, tempfile, time\nfolder = tempfile.TemporaryDirectory()\nlock = pathlib.Path(folder.name, 'download.lock'); lock.touch()\ndef download():\n    while lock.exists():\n        time.sleep(0.1)\nif rank: download()\ndist.barrier()",
        "busy",
        "0",
        "1-3",
        "line 6 of cell",
        verdict="waits",
    ),
    Hang(
        "eth-cscs/DLA-Future#423: the pool's only thread makes a new process group, before what the others wait for",
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\ntasks = [dist.new_group, lambda: dist.all_reduce(torch.ones(4))]\ndone = [pool.submit(task) for task in (tasks if rank == 0 else tasks[::-1])]\nfor one in done: one.result()",
        "mismatch",
        "0-3",
        "",
        "all_reduce",
    ),
    Hang(
        "ComputationalRadiationPhysics/picongpu#2683: rank 0 is at a barrier, its message is still in a queue",
        "tasks = [lambda: dist.send(torch.ones(4), 1)] if rank == 0 else []\nif rank == 1: dist.recv(torch.empty(4), 0)\ndist.barrier()\nfor task in tasks: task()",
        "mismatch",
        "0-3",
        "",
        "recv",
    ),
    Hang(
        "pytorch/pytorch#158719: a rank leaves out a part of its sharded model",
        "class Routed(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.shared, self.expert = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)\n    def forward(self, x):\n        x = self.shared(x)\n        return self.expert(x) if rank != 1 else x\nmodel = Routed()\nfor part in (model.shared, model.expert): fully_shard(part)\nmodel(torch.ones(1, 4))",
        "missing",
        "0,2-3",
        "1",
        "in FSDP",
        first="from torch.distributed.fsdp import fully_shard",
    ),
    Hang(
        "mosaicml/streaming#617: the workers of one rank's loader wait for a barrier that one of them never reaches",
        "import multiprocessing\nmeeting = multiprocessing.get_context('fork').Barrier(3)\nclass Stream(torch.utils.data.IterableDataset):\n    def __iter__(self):\n        yield torch.ones(1)\n        if rank == 2: meeting.wait()\nfor item in torch.utils.data.DataLoader(Stream(), num_workers=2, batch_size=1):\n    pass\ndist.barrier()",
        "busy",
        "0-1,3",
        "2",
        "rank 2 is at line 7 of cell",
        verdict="waits",
    ),
    Hang(
        "horovod/horovod#2420: a gradient is sparse on all ranks but one, and is gathered there",
        "table = torch.nn.Embedding(8, 2, sparse=rank > 0)\ntable(torch.tensor([1, 2])).sum().backward()\ngrad = table.weight.grad\nif grad.is_sparse:\n    dist.all_gather([torch.empty(2, 2) for _ in range(4)], grad._values())\nelse:\n    dist.all_reduce(grad)",
        "mismatch",
        "0-3",
        "",
        "all_gather",
    ),
    Hang(
        "NVIDIA/TensorRT-LLM#7507: the object of one rank cannot be pickled",
        "import threading\nvalue = {'step': 1, 'lock': threading.Lock() if rank == 1 else None}\nfound = [None] * 4\ndist.all_gather_object(found, value)",
        "missing",
        "0,2-3",
        "1",
        "TypeError",
    ),
    Hang(
        "HDFGroup/hdf5#118: rank 0 has no size of the file and closes it, the others wait for that size",
        "class File:\n    def open(self):\n        size = [None]\n        try:\n            if rank == 0: raise OSError('no size')\n            dist.broadcast_object_list(size, 0)\n        except OSError:\n            self.close()\n    def close(self):\n        dist.barrier()\nFile().open()",
        "mismatch",
        "0-3",
        "",
        "barrier",
    ),
    Hang(
        "sgl-project/sgl-kernel-npu#69: ranks that got no tokens do not combine",
        "tokens = [4, 0, 4, 0]\nfor layer in range(2):\n    got = torch.ones(tokens[rank] if layer else 4)\n    dist.all_gather([torch.empty(1) for _ in range(4)], torch.ones(1))\n    if got.numel():\n        dist.all_to_all_single(torch.empty(4), torch.ones(4))",
        "missing",
        "0,2",
        "1,3",
        "all_to_all",
    ),
]

INNOCENT = [
    Innocent(
        "huggingface/transformers#33483: ranks whose text has ended go on until all have",
        "import time\nlengths = [2, 9, 3, 5]\nfor token in range(20):\n    sharded(torch.ones(1, 4))\n    if rank == 1: time.sleep(0.4)\n    going = torch.tensor(float(token < lengths[rank]))\n    dist.all_reduce(going)\n    if not going: break",
        first=SHARDED,
    ),
    Innocent(
        "tier4/Diffusion-Planner#336: a rank that failed comes to the barrier, late, and tells the others",
        "import time\nfailed = 0.0\ntry:\n    if rank == 2:\n        time.sleep(3); raise ValueError\nexcept ValueError:\n    failed = 1.0\ndist.barrier()\nfailures = torch.tensor(failed)\ndist.all_reduce(failures)",
    ),
    Innocent(
        "mosaicml/llm-foundry#733: the others look for a file until rank 0 has saved, then come to a barrier",
        "import pathlib, time\ndone = pathlib.Path('saved')\nif rank == 0:\n    time.sleep(3); done.touch()\nwhile not done.exists(): time.sleep(0.5)\ndist.barrier()\nif rank == 0: done.unlink()",
    ),
    Innocent(
        "pytorch/pytorch#178815: stages that receive just before they compute, one of them slow",
        "import time\nfor micro in range(3):\n    if rank: dist.recv(torch.empty(4), rank - 1)\n    time.sleep(1.2 if rank == 2 else 0.05)\n    if rank < 3: dist.send(torch.ones(4), rank + 1)",
    ),
    Innocent(
        "KempnerInstitute/KempnerForge#50: rank 0 alone reads the file, and tells the others",
        "import time\nstate = [None]\nif rank == 0:\n    time.sleep(3); state = [{'step': 4}]\ndist.broadcast_object_list(state, 0)",
    ),
]
