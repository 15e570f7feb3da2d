"""Programs that no rule was tuned on: other models, loops and numbers of ranks than those of kinds.py.

They were written before they were run, and rules do not change because of them, with two exceptions (docs/benchmarks/faults.md):
what is found on them is published as it is.
A cause that is missed here is planted in kinds.py in another way, and mended there.
"""

from __future__ import annotations

from .kinds import STRAGGLER, Slow, Steady

# Runs before each of them, on all ranks.
FIRST = """import contextlib, copy, gc, json, logging, os, random, sys, tempfile, time
import numpy as np
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, IterableDataset
torch.set_num_threads(1)
torch.manual_seed(rank)
world = dist.get_world_size()
chance = random.Random(100 + rank)
folder = tempfile.mkdtemp()
class Tagger(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(50, width), nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, 5)
    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])
net = DistributedDataParallel(Tagger())
adam = torch.optim.AdamW(net.parameters(), lr=1e-4)
tokens = torch.randint(0, 50, (4, 10))
def fit(model, tokens, optimizer=adam):
    loss = model(tokens).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()
fit(net, tokens)
"""

SLOW = [
    Slow(
        "one rank preprocesses with numpy before FSDP",
        "def augment(images):\n    time.sleep(0.05 if rank == 1 else 0.0)\n    return np.flip(images, 1).copy()\n"
        "body = nn.Sequential(nn.Linear(48, 96), nn.ReLU(), nn.Linear(96, 48))\nfor part in body:\n"
        "    fully_shard(part) if isinstance(part, nn.Linear) else None\nfully_shard(body)\n"
        "sgd = torch.optim.SGD(body.parameters(), lr=1e-3)\nfor step in range(10_000):\n"
        "    images = torch.from_numpy(augment(np.ones((4, 48), dtype='float32')))\n"
        "    body(images).sum().backward()\n    sgd.step()\n    sgd.zero_grad()",
        STRAGGLER,
        "1",
        ("time.sleep(0.05", "augment(np.ones"),
        num_ranks=2,
        computes=True,
    ),
    Slow(
        "the last rank evaluates every eighth step",
        "def evaluate(model):\n    scores = []\n    for part in range(8):\n        time.sleep(0.05)\n        scores.append(part)\n"
        "    return scores\nfor step in range(10_000):\n    fit(net, tokens)\n    time.sleep(0.01)\n"
        "    if rank == world - 1 and step % 8 == 7:\n        evaluate(net.module)",
        STRAGGLER,
        "3",
        ("time.sleep(0.05)", "evaluate(net.module)"),
        num_ranks=4,
    ),
    Slow(
        "a worker of one rank's loader dies, and is replaced",
        "class Rows(Dataset):\n    def __len__(self):\n        return 60\n    def __getitem__(self, index):\n"
        "        if rank == 1 and index == 2:\n            time.sleep(0.2)\n            os._exit(1)\n        return torch.tensor(index)\n"
        "def batches():\n    while True:\n        try:\n            yield from DataLoader(Rows(), batch_size=1, num_workers=1, prefetch_factor=1)\n"
        "        except RuntimeError:\n            pass\nfor step, batch in enumerate(batches()):\n    fit(net, tokens)\n"
        "    time.sleep(0.01)\n    if step > 400:\n        break",
        STRAGGLER,
        "1",
        ("yield from DataLoader", "enumerate(batches())"),
    ),
    Slow(
        "rank 0 flushes its metrics to the disk each step",
        "log = open(os.path.join(folder, 'metrics.jsonl'), 'w')\ndef flush(record):\n    for _ in range(4):\n"
        "        log.write(json.dumps(record))\n        os.fsync(log.fileno())\n        time.sleep(0.015)\n"
        "for step in range(10_000):\n    loss = fit(net, tokens)\n    time.sleep(0.005)\n    if rank == 0:\n        flush({'step': step})",
        STRAGGLER,
        "0",
        ("time.sleep(0.015)", "os.fsync(log.fileno())", "flush({'step'"),
        num_ranks=4,
    ),
    Slow(
        "a collate function that cleans text",
        "class Texts(IterableDataset):\n    def __iter__(self):\n        while True:\n            yield 'some words'\n"
        "def collate(texts):\n    time.sleep(0.07)\n    return torch.randint(0, 50, (len(texts), 10))\n"
        "until = time.monotonic() + 13\nfor tokens in DataLoader(Texts(), batch_size=4, collate_fn=collate):\n    fit(net, tokens)\n"
        "    go = torch.tensor(float(time.monotonic() < until))\n    dist.all_reduce(go, dist.ReduceOp.MIN)\n    if not go: break",
        ("input",),
        "0-1",
        ("for tokens in DataLoader",),
        num_ranks=2,
    ),
    Slow(
        "logging of each weight",
        "logger = logging.getLogger('run')\nlogger.handlers = [logging.StreamHandler(sys.stdout)]\nlogger.setLevel(logging.INFO)\n"
        "for step in range(10_000):\n    fit(net, tokens)\n    for name, weight in net.module.named_parameters():\n"
        "        for row in weight[:40]:\n            logger.info('%s %s', name, row)",
        ("printing",),
        "0-2",
        ("logger.info(",),
        computes=True,
    ),
    Slow(
        "all ranks save each fourth step",
        "big = {'ema': torch.ones(4_000_000)}\nfor step in range(10_000):\n    fit(net, tokens)\n    time.sleep(0.005)\n"
        "    if step % 4 == 3:\n        torch.save(big, os.path.join(folder, f'last-{rank}.pt'))",
        ("saving",),
        "0-1",
        ("torch.save(big",),
        num_ranks=2,
        computes=True,
    ),
    Slow(
        "predictions that are kept on all ranks",
        "predictions = {}\ndef remember(step, output):\n    predictions[step] = output\nfor step in range(10_000):\n    fit(net, tokens)\n"
        "    remember(step, torch.ones(60_000) * step)\n    time.sleep(0.02)",
        ("memory",),
        "0-3",
        ("predictions[step] = output",),
        num_ranks=4,
    ),
    Slow(
        "objects in cycles, collected by hand on all ranks",
        "kept = [{'id': number, 'next': [number]} for number in range(300_000)]\nfor step in range(10_000):\n    fit(net, tokens)\n"
        "    gc.collect()",
        ("collector",),
        "0-1",
        num_ranks=2,
        computes=True,
    ),
    Slow(
        "a function that is compiled for each sequence length",
        "torch._dynamo.reset()\ntorch._dynamo.config.recompile_limit = torch._dynamo.config.cache_size_limit = 10_000\n"
        "@torch.compile(backend='eager', dynamic=False)\ndef score(values):\n    for power in range(2, 20):\n"
        "        values = values + torch.cos(values) / power\n    return values.sum()\nfor length in range(3, 10_000):\n"
        "    score(torch.rand(length))\n    fit(net, tokens)\n    time.sleep(0.01)",
        ("compiling",),
        "0-1",
        ("score(torch.rand(length))",),
        num_ranks=2,
        computes=True,
    ),
]

STEADY = [
    Steady(
        "two networks that are trained in turns",
        "critic = DistributedDataParallel(nn.Linear(10, 1))\nsgd = torch.optim.SGD(critic.parameters(), lr=1e-3)\n"
        "for step in range(400):\n    critic(torch.rand(4, 10)).sum().backward()\n    sgd.step()\n    sgd.zero_grad()\n"
        "    time.sleep(0.02)\n    if step % 3 == 2:\n        fit(net, tokens)\n        time.sleep(0.02)",
        num_ranks=4,
    ),
    Steady(
        "a progress bar, and a scheduler",
        "from tqdm import tqdm\nscheduler = torch.optim.lr_scheduler.StepLR(adam, 100)\nfor step in tqdm(range(350)):\n"
        "    fit(net, tokens)\n    scheduler.step()\n    time.sleep(0.03)",
        num_ranks=2,
    ),
    Steady(
        "a first epoch that fills a cache",
        "class Cached(Dataset):\n    rows = {}\n    def __len__(self):\n        return 24\n    def __getitem__(self, index):\n"
        "        if index not in self.rows:\n            time.sleep(0.1)\n            self.rows[index] = torch.randint(0, 50, (10,))\n"
        "        return self.rows[index]\nfor epoch in range(60):\n    for batch in DataLoader(Cached(), batch_size=4):\n"
        "        fit(net, batch)\n        time.sleep(0.03)",
    ),
    Steady(
        "a server of parameters and its workers",
        "weights = torch.zeros(100)\nfor step in range(250):\n    if rank == 0:\n        for worker in range(1, world):\n"
        "            dist.recv(weights, worker)\n        for worker in range(1, world):\n            dist.send(weights, worker)\n"
        "    else:\n        time.sleep(0.04)\n        dist.send(weights, 0)\n        dist.recv(weights, 0)",
    ),
    Steady(
        "noise of a tenth of a step",
        "for step in range(300):\n    time.sleep(chance.uniform(0.036, 0.04))\n    fit(net, tokens)",
        num_ranks=4,
    ),
    Steady(
        "ranks that wait for a file of another program",
        "for _ in range(130):\n    os.path.exists(os.path.join(folder, 'ready'))\n    time.sleep(0.1)",
        num_ranks=2,
    ),
    Steady(
        "rank 0 writes a short line each step",
        "log = open(os.path.join(folder, 'log.txt'), 'w')\nfor step in range(350):\n    loss = fit(net, tokens)\n    time.sleep(0.03)\n"
        "    if rank == 0:\n        print(step, float(loss), file=log, flush=True)",
        num_ranks=2,
    ),
    Steady(
        "pairs of ranks that average among themselves",
        "pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]\nmine = pairs[rank // 2]\nfor step in range(300):\n"
        "    time.sleep(0.02 + 0.02 * (rank // 2))\n    dist.all_reduce(torch.ones(10), group=mine)",
        num_ranks=4,
    ),
]
