"""The slow bench: programs with a planted cause of slowness, and innocent ones that look like it.

On three ranks, unless it has another number. Each cell runs until the bench interrupts it, on a machine of any speed; docs/how-to/why-is-it-slow.md prints this table. What stands for
the work of a device is a sleep: on a machine with few cores, ranks that compute would wait for each other's cores.
"""

from __future__ import annotations

from dataclasses import dataclass

EVERYONE = "0-2"

# Runs before each kind, on all ranks.
FIRST = """import contextlib, gc, os, random, subprocess, sys, tempfile, time
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
for process in globals().get("others", ()):  # of the cell before, which has pinned rank 1 to a core
    process.kill()
    process.wait()
others = []
os.sched_setaffinity(0, range(os.cpu_count()))
torch.set_num_threads(1)
torch.manual_seed(0)
chance = random.Random(rank)
nn, optim = torch.nn, torch.optim
def layers(number, width):
    return nn.Sequential(*(nn.Linear(width, width) for _ in range(number)))
model = DDP(layers(2, 64))
optimizer = optim.SGD(model.parameters(), lr=1e-4)
batch = torch.ones(8, 64)
def train(batch, model=model):
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
train(batch)
class Items(Dataset):
    def __init__(self, number, seconds):
        self.number, self.seconds = number, seconds
    def __len__(self):
        return self.number
    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.ones(64)
folder = tempfile.mkdtemp()
kept = cache = losses = seen = None  # of the program before
gc.collect()
"""


@dataclass(frozen=True)
class Slow:
    """A cell that is slow: why, through which ranks, and at which line."""

    name: str
    code: str
    kinds: tuple[str, ...]
    ranks: str = EVERYONE
    line: tuple[str, ...] = ()  # any of these parts of a line must be in the line that is named
    num_ranks: int = 3
    computes: bool = False  # other cells would take its cores


@dataclass(frozen=True)
class Steady:
    """A cell that nothing slows down, or that is as its author wants it."""

    name: str
    code: str
    ranks: str = "all"
    num_ranks: int = 3
    computes: bool = False


STRAGGLER = ("straggler", "occasional")
# A pipe that is read slowly.
SLOW_DISK = (
    "code = 'import os, time\\nwhile os.read(0, 1 << 14): time.sleep(0.01)'\n"
    "reader = subprocess.Popen([sys.executable, '-c', code], stdin=subprocess.PIPE)\nothers.append(reader)\nlog = reader.stdin.fileno()\n"
)

SLOW = [
    Slow(
        "a rank computes more",
        "matrix = torch.randn(300, 300)\nfor i in range(10_000):\n    train(batch)\n    time.sleep(0.01)\n"
        "    if rank == 2:\n        torch.linalg.svd(matrix)",
        STRAGGLER,
        "2",
        ("torch.linalg.svd(matrix)",),
        computes=True,
    ),
    Slow(
        "a rank reads slowly",
        "for i in range(10_000):\n    train(batch)\n    time.sleep(0.01)\n    if rank == 1:\n        time.sleep(0.04)",
        STRAGGLER,
        "1",
        ("time.sleep(0.04)",),
    ),
    Slow(
        "a bigger batch on one rank",
        "model = DDP(layers(4, 256))\noptimizer = optim.SGD(model.parameters(), lr=1e-4)\n"
        "mine = torch.ones(2048 if rank == 0 else 16, 256)\nfor i in range(10_000):\n    loss = model(mine).sum()\n"
        "    loss.backward()\n    optimizer.step()\n    optimizer.zero_grad()\n    time.sleep(0.005)",
        STRAGGLER,
        "0",
        ("loss = model(mine)", "loss.backward()"),
        computes=True,
    ),
    Slow(
        "a rank whose process is throttled",
        "code = f'''import os, signal, time\nfor _ in range(200):\n    os.kill({os.getpid()}, signal.SIGSTOP); time.sleep(0.04)\n"
        "    os.kill({os.getpid()}, signal.SIGCONT); time.sleep(0.02)'''\n"
        "if rank == 1: others.append(subprocess.Popen([sys.executable, '-c', code]))\nfor i in range(10_000):\n    train(batch)\n    time.sleep(0.005)",
        ("straggler", "occasional", "contention"),
        "1",
        computes=True,
    ),
    Slow(
        "a rank that shares its core",
        "if rank == 1:\n    os.sched_setaffinity(0, {0})\n    code = 'import os, time; os.sched_setaffinity(0, {0}); "
        "end = time.time() + 13\\nwhile time.time() < end: pass'\n"
        "    others = [subprocess.Popen([sys.executable, '-c', code]) for _ in range(3)]\nmatrix = torch.randn(100, 100)\n"
        "for i in range(10_000):\n    train(batch)\n    torch.linalg.svd(matrix)\n    time.sleep(0.005)",
        ("contention", "straggler"),
        "1",
        computes=True,
    ),
    Slow(
        "a DataLoader without workers",
        "for batch in DataLoader(Items(8000, 0.004), batch_size=8):\n    train(batch)\n    time.sleep(0.01)",
        ("input",),
        line=("for batch in DataLoader",),
    ),
    Slow(
        "workers that are started for each short epoch",
        "loader = DataLoader(Items(16, 0.0), batch_size=8, num_workers=1)\nfor epoch in range(10_000):\n"
        "    for batch in loader:\n        train(batch)",
        ("input",),
        line=("for batch in loader",),
        computes=True,
    ),
    Slow(
        "slow data on one rank",
        "for batch in DataLoader(Items(8000, 0.006 if rank == 2 else 0.0), batch_size=8):\n    train(batch)\n    time.sleep(0.01)",
        STRAGGLER,
        "2",
        ("for batch in DataLoader",),
    ),
    Slow(
        "rank 0 tokenises for all",
        "def tokenise(text):\n    time.sleep(0.06)\n    return list(text)\nfor i in range(10_000):\n    found = [None]\n"
        "    if rank == 0:\n        found = [tokenise('words')]\n    dist.broadcast_object_list(found, 0)\n    train(batch)",
        STRAGGLER,
        "0",
        ("time.sleep(0.06)", "tokenise('words')"),
    ),
    Slow(
        "rank 0 saves a checkpoint now and then",
        "state = {'weights': torch.ones(30_000_000)}\nfor i in range(10_000):\n    train(batch)\n    time.sleep(0.01)\n"
        "    if rank == 0 and i % 20 == 19:\n        torch.save(state, os.path.join(folder, 'checkpoint.pt'))",
        (*STRAGGLER, "saving"),
        "0",
        ("torch.save(state",),
        computes=True,
    ),
    Slow(
        "rank 0 writes its log to a slow disk",
        f"{SLOW_DISK}for i in range(10_000):\n    train(batch)\n    if rank == 0:\n        os.write(log, bytes(1 << 16))",
        STRAGGLER,
        "0",
        ("os.write(log, bytes(1 << 16))",),
    ),
    Slow(
        "all ranks wait for a slow disk",
        f"{SLOW_DISK}for i in range(10_000):\n    train(batch)\n    os.write(log, bytes(1 << 16))",
        ("blocked",),
        line=("os.write(log, bytes(1 << 16))",),
    ),
    Slow(
        "all ranks save many small tensors each fifth step",
        "state = {str(number): torch.ones(10) for number in range(1500)}\nfor i in range(10_000):\n    train(batch)\n    time.sleep(0.005)\n"
        "    if i % 5 == 4:\n        torch.save(state, os.path.join(folder, f'small-{rank}.pt'))",
        ("saving",),
        line=("torch.save(state",),
        computes=True,
    ),
    Slow(
        "a large tensor is printed each step",
        "torch.set_printoptions(threshold=100_000)\nwide = torch.randn(60, 60)\nfor i in range(10_000):\n    train(batch)\n"
        "    print(wide)",
        ("printing",),
        line=("print(wide)",),
        computes=True,
    ),
    Slow(
        "gradients accumulate without no_sync",
        "model = DDP(layers(6, 768))\noptimizer = optim.SGD(model.parameters(), lr=1e-4)\nwide = torch.ones(2, 768)\n"
        "for i in range(10_000):\n    model(wide).sum().backward()\n    if i % 8 == 7:\n        optimizer.step()\n"
        "        optimizer.zero_grad()",
        ("communication", "accumulation"),
        line=("model(wide).sum().backward()",),
        computes=True,
    ),
    Slow(
        "gradients of FSDP2 accumulate and are reduced each time",
        "from torch.distributed.fsdp import fully_shard\nmodel = layers(4, 768)\nfor part in model:\n    fully_shard(part)\n"
        "fully_shard(model)\noptimizer = optim.AdamW(model.parameters(), lr=1e-4)\nwide = torch.ones(2, 768)\n"
        "for i in range(10_000):\n    model(wide).sum().backward()\n    if i % 8 == 7:\n        optimizer.step()\n"
        "        optimizer.zero_grad()",
        ("accumulation",),
        line=("model(wide).sum().backward()",),
        computes=True,
    ),
    Slow(
        "batches of uneven length",
        "for i in range(10_000):\n    time.sleep(chance.choice([0.005, 0.1]))\n    train(batch)",
        ("uneven",),
    ),
    Slow(
        "a list that keeps each loss with its graph",
        "wide, losses = torch.ones(2048, 64), []\nfor i in range(10_000):\n    hidden = torch.relu(wide * i)\n"
        "    loss = (hidden * batch.mean().requires_grad_()).sum()\n    losses.append(loss)\n    dist.all_reduce(loss.detach())\n"
        "    time.sleep(0.01)",
        ("memory",),
        line=("losses.append(loss)",),
        computes=True,
    ),
    Slow(
        "a cache that grows on one rank",
        "cache = {}\nfor i in range(10_000):\n    if rank == 1:\n        cache[i] = torch.ones(100_000)\n    train(batch)\n    time.sleep(0.01)",
        ("memory",),
        "1",
        ("cache[i] = torch.ones",),
    ),
    Slow(
        "pauses of the garbage collector",
        "kept = [[number] for number in range(500_000)]\nfor i in range(10_000):\n    train(batch)\n    time.sleep(0.01)\n"
        "    if rank == 2: gc.collect()",
        ("collector", "straggler"),
        "2",
        computes=True,
    ),
    Slow(
        "torch.compile compiles each step anew",
        "torch._dynamo.config.recompile_limit = torch._dynamo.config.cache_size_limit = 10_000\n"
        "def silly(x):\n    for _ in range(15):\n        x = torch.sin(x) + 1\n    return x\n"
        "compiled = torch.compile(silly, backend='eager', dynamic=False)\nfor i in range(10_000):\n"
        "    compiled(torch.ones(i + 1))\n    train(batch)\n    time.sleep(0.02)",
        ("compiling",),
        line=("compiled(torch.ones(i + 1))",),
        computes=True,
    ),
    Slow(
        "a collective for each metric",
        "metrics = [torch.ones(1) for _ in range(40)]\nfor i in range(10_000):\n    for metric in metrics:\n"
        "        dist.all_reduce(metric)\n    dist.all_reduce(batch)",
        ("small_collectives", "communication"),
        line=("dist.all_reduce(metric)",),
        computes=True,
    ),
    Slow(
        "small buckets",
        "model = DDP(layers(40, 32), bucket_cap_mb=0.001)\noptimizer = optim.SGD(model.parameters(), lr=1e-4)\n"
        "for i in range(10_000):\n    model(torch.ones(1, 32)).sum().backward()\n    optimizer.step()\n    optimizer.zero_grad()",
        ("small_collectives", "communication"),
        line=("backward()",),
        computes=True,
    ),
    Slow(
        "find_unused_parameters with outputs in many lists",
        "class Boxes(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layers = layers(2, 64)\n"
        "        self.boxes = [{'name': 'box', 'corners': [number, number]} for number in range(6000)]\n"
        "    def forward(self, batch):\n        return self.layers(batch), self.boxes\nboxed = DDP(Boxes(), find_unused_parameters=True)\nfor i in range(10_000):\n"
        "    output, boxes = boxed(batch)\n    output.sum().backward()\n    time.sleep(0.02)",
        ("unused_parameters",),
        line=("output, boxes = boxed(batch)",),
        computes=True,
    ),
    Slow(
        "a slow link",
        "wide = torch.ones(8_000_000)\nfor i in range(10_000):\n    dist.all_reduce(wide)\n    time.sleep(0.01)",
        ("communication",),
        line=("dist.all_reduce(wide)",),
        computes=True,
    ),
    Slow(
        "steps that take longer and longer",
        "seen = []\nfor i in range(10_000):\n    seen.append(float(i))\n    train(batch)\n    time.sleep(0.005)\n"
        "    torch.tensor(seen * 150).sort()",
        ("growing",),
        line=("torch.tensor(seen * 150).sort()",),
        computes=True,
    ),
    Slow(
        "a straggler behind another process group",
        "pair, both = dist.new_group([0, 1]), dist.new_group([1, 2])\nfor i in range(10_000):\n    if rank == 2:\n        time.sleep(0.05)\n"
        "    if rank in (1, 2): dist.all_reduce(batch, group=both)\n    if rank in (0, 1): dist.all_reduce(batch, group=pair)",
        STRAGGLER,
        "2",
        ("time.sleep(0.05)",),
    ),
    Slow(
        "a generator that sleeps",
        "def batches():\n    while True:\n        time.sleep(0.08)\n        yield batch\nfor item in batches():\n    train(item)",
        ("line",),
        EVERYONE,
        ("time.sleep(0.08)",),
    ),
    Slow(
        "text that is tokenised in each step",
        "text = 'some words of a text ' * 60_000\ndef tokenise(text):\n    found = []\n    for word in text.split():\n        found.append(len(word) * 31 % 1000)\n    return found\nwhile True:\n    tokens = tokenise(text)\n    train(batch)\n    time.sleep(0.01)",
        ("line",),
        EVERYONE,
        ("found.append", "for word in text", "tokenise(text)"),
        computes=True,
    ),
    Slow(
        "a copy of the state in each step",
        "import copy\nstate = {str(k): [torch.ones(10) for _ in range(20)] for k in range(20)}\nwhile True:\n    kept = copy.deepcopy(state)\n    train(batch)\n    time.sleep(0.02)",
        ("line",),
        EVERYONE,
        ("copy.deepcopy(state)",),
        computes=True,
    ),
    Slow(
        "a stage of a pipeline by send and recv",
        "def work():\n    time.sleep(0.06 if rank == 2 else 0.01)\nt = torch.ones(100)\nwhile True:\n    if rank: dist.recv(t, rank - 1)\n    work()\n    if rank < 3: dist.send(t, rank + 1)\n    if rank < 3: dist.recv(t, rank + 1)\n    if rank: dist.send(t, rank - 1)",
        STRAGGLER,
        "2",
        ("time.sleep(0.06",),
        num_ranks=4,
    ),
    Slow(
        "a late rank in a process group of two",
        "pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]\nt = torch.ones(10)\nwhile True:\n    time.sleep(0.01)\n    if rank == 3:\n        time.sleep(0.05)\n    dist.all_reduce(t, group=pairs[rank // 2])",
        STRAGGLER,
        "3",
        ("time.sleep(0.05)",),
        num_ranks=4,
    ),
    Slow(
        "objects that are gathered",
        "while True:\n    found = [None] * dist.get_world_size()\n    dist.all_gather_object(found, {str(k): [k] * 20 for k in range(3000)})\n    time.sleep(0.01)",
        ("objects",),
        EVERYONE,
        ("all_gather_object",),
        computes=True,
    ),
    Slow(
        "rank 0 saves every tenth step before a barrier",
        "big = {'ema': torch.ones(40_000_000)}\nfor step in range(10_000):\n    train(batch)\n    time.sleep(0.02)\n    if step % 10 == 9:\n        if rank == 0:\n            torch.save(big, os.path.join(folder, 'last.pt'))\n        dist.barrier()",
        (*STRAGGLER, "saving"),
        "0",
        ("torch.save(big",),
    ),
    Slow(
        "a loop in Python on one rank",
        "n = 0\nwhile True:\n    if rank == 1:\n        for k in range(400_000):\n            if k % 7 == 3:\n                n += k\n    train(batch)",
        STRAGGLER,
        "1",
        ("for k in range", "if k % 7", "n += k"),
        computes=True,
    ),
    Slow(
        "a search in a list on one rank",
        "numbers = list(range(4_000_000))\nwhile True:\n    found = -1 in numbers if rank == 1 else False\n    n = 3\n    train(batch)",
        STRAGGLER,
        "1",
        ("-1 in numbers",),
        computes=True,
    ),
    Slow(
        "a search in a list before a function in C, on one rank",
        "numbers = list(range(4_000_000))\nwhile True:\n    if rank == 1:\n        found = -1 in numbers\n        number = len(numbers)\n    dist.all_reduce(torch.ones(100))",
        STRAGGLER,
        "1",
        ("found = -1 in numbers",),
        computes=True,
    ),
    Slow(
        "a function in C after a search, on one rank",
        "numbers = [i * 7919 % 600_011 for i in range(400_000)]\nwhile True:\n    if rank == 1:\n        found = numbers[0] in (1, 2)\n        ordered = sorted(numbers)\n    dist.all_reduce(torch.ones(100))",
        STRAGGLER,
        "1",
        ("ordered = sorted(",),
        computes=True,
    ),
    Slow(
        "thousands of lines that rank 0 prints in each step",
        "while True:\n    train(batch)\n    if rank == 0:\n        for k in range(6000): print('step', k)",
        (*STRAGGLER, "printing"),
        "0",
        ("for k in range(6000): print",),
        computes=True,
    ),
    Slow(
        "thousands of lines that all ranks print in each step",
        "while True:\n    train(batch)\n    for k in range(12_000): print('step', k)",
        ("line", "printing"),
        EVERYONE,
        ("for k in range(12_000): print",),
        computes=True,
    ),
    Slow(
        "a helper that all ranks call",
        "def pause(seconds):\n    time.sleep(seconds)\nwhile True:\n    pause(0.02)\n    if rank == 2:\n        pause(0.05)\n    train(batch)",
        STRAGGLER,
        "2",
        ("pause(0.05)",),
    ),
    Slow(
        "a large broadcast before a small all_reduce",
        "p = torch.ones(10_000_000)\nwhile True:\n    dist.broadcast(p, 0)\n    dist.all_reduce(torch.ones(100))",
        ("communication",),
        EVERYONE,
        ("dist.broadcast(p, 0)",),
        computes=True,
    ),
    Slow(
        "a straggler that changes",
        "step = 0\nwhile True:\n    step += 1\n    if step // 40 % 3 == rank:\n        time.sleep(0.06)\n    train(batch)\n    time.sleep(0.005)",
        ("uneven",),
        EVERYONE,
        ("time.sleep(0.06)",),
    ),
    Slow(
        "input that takes turns",
        "class Long(Dataset):\n    def __len__(self): return 100000\n    def __getitem__(self, i):\n        time.sleep(0.14 if (i // 3 + rank) % 3 == 0 else 0.01); return torch.ones(64)\nfor item in DataLoader(Long(), batch_size=1, num_workers=1, prefetch_factor=1):\n    train(item); time.sleep(.005)",
        ("input", "uneven"),
        EVERYONE,
        ("in DataLoader",),
    ),
]

STEADY = [
    Steady("balanced training", "for i in range(500):\n    train(batch)\n    time.sleep(0.02)"),
    Steady(
        "balanced training, computing",
        "matrix = torch.randn(80, 80)\nfor i in range(10_000):\n    torch.linalg.svd(matrix)\n    train(batch)",
        computes=True,
    ),
    Steady(
        "a slow first step",
        "for i in range(200):\n    time.sleep(4.0 if i == 0 and rank == 0 else 0.03)\n    train(batch)",
    ),
    Steady(
        "a first compilation",
        "def model_of(x):\n    for _ in range(60):\n        x = torch.sin(x) + 1\n    return x\n"
        "compiled = torch.compile(model_of, backend='eager')\nfor i in range(600):\n    compiled(batch)\n    train(batch)\n    time.sleep(0.02)",
        computes=True,
    ),
    Steady(
        "evaluation between epochs",
        "for epoch in range(4):\n    for i in range(60):\n        train(batch)\n        time.sleep(0.02)\n"
        "    with torch.no_grad():\n        for i in range(20):\n            model.module(batch)\n            time.sleep(0.05)\n    dist.barrier()",
    ),
    Steady(
        "a pipeline with bubbles",
        "for i in range(150):\n    if rank > 0: dist.recv(batch, rank - 1)\n    time.sleep(0.02)\n    if rank < 2: dist.send(batch, rank + 1)",
    ),
    Steady(
        "a coordinator that waits for workers",
        "for i in range(150):\n    if rank: time.sleep(0.06)\n    dist.gather(batch, [torch.empty_like(batch) for _ in range(3)] if rank == 0 else None)",
    ),
    Steady("searching parameters, each rank by itself", "for i in range(40):\n    time.sleep(0.2 + 0.1 * rank)"),
    Steady(
        "a rank that downloads once",
        "if rank == 0: time.sleep(7)\ndist.barrier()\nfor i in range(80):\n    train(batch)\n    time.sleep(0.03)",
    ),
    Steady(
        "data that is prepared, and grows",
        "rows = []\nfor i in range(300):\n    rows.append(torch.ones(50_000))\n    time.sleep(0.03)",
    ),
    Steady("a cell on one rank", "for i in range(80):\n    time.sleep(0.1)", "1"),
    Steady("small differences", "for i in range(300):\n    time.sleep(0.03 + 0.002 * (rank == 2))\n    train(batch)"),
    Steady(
        "a loader that keeps up",
        "for batch in DataLoader(Items(3000, 0.0), batch_size=8):\n    train(batch)\n    time.sleep(0.03)",
    ),
    Steady(
        "progress that is printed",
        "for i in range(400):\n    train(batch)\n    time.sleep(0.02)\n    print('step', i, 'loss', 1 / (i + 1))",
    ),
    Steady(
        "accumulation with no_sync",
        "for i in range(400):\n    with model.no_sync() if i % 4 < 3 else contextlib.nullcontext():\n        model(batch).sum().backward()\n"
        "    if i % 4 == 3:\n        optimizer.step()\n        optimizer.zero_grad()\n    time.sleep(0.02)",
    ),
    Steady(
        "accumulation of FSDP2 that reduces gradients once a step",
        "from torch.distributed.fsdp import fully_shard\nmodel = layers(4, 128)\n"
        "fully_shard(model)\noptimizer = optim.AdamW(model.parameters(), lr=1e-4)\nwide = torch.ones(2, 128)\n"
        "for i in range(10_000):\n    model.set_requires_gradient_sync(i % 4 == 3)\n    model(wide).sum().backward()\n"
        "    if i % 4 == 3:\n        optimizer.step()\n        optimizer.zero_grad()\n    time.sleep(0.1)",
    ),
    Steady("short cells", "for i in range(20):\n    train(batch)\n    time.sleep(0.02 * (1 + 4 * (rank == 1)))"),
]
