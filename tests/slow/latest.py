"""Slow programs as public reports describe them, read after those of later.py. Each names its report."""

from __future__ import annotations

from .kinds import EVERYONE, FIRST, STRAGGLER, Slow, Steady

__all__ = ["FIRST", "SLOW", "STEADY"]

SLOW = [
    Slow(
        "coax-dev/coax#25: samples are drawn from the middle of a deque",
        "from collections import deque\nmemory = deque(range(1_000_000), maxlen=1_000_000)\ndef sample(number):\n    return [memory[chance.randrange(len(memory))] for _ in range(number)]\nwhile True:\n    sample(2000)\n    train(batch)",
        ("line",),
        EVERYONE,
        ("memory[chance", "sample(2000)"),
        computes=True,
    ),
    Slow(
        "sdpkjc/abcdrl#31: a few of many are chosen without replacement in each step",
        "import numpy as np\ndef sample(size):\n    return np.random.choice(size, size=64, replace=False)\nwhile True:\n    sample(1_000_000)\n    train(batch)",
        ("line",),
        EVERYONE,
        ("np.random.choice", "sample(1_000_000)"),
        computes=True,
    ),
    Slow(
        "traceopt-ai/traceml#252: the backward pass of one rank takes longer",
        "def busy(gradient):\n    if rank == 1:\n        end = time.perf_counter() + 0.06\n        while time.perf_counter() < end: pass\n    return gradient\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)\n    def forward(self, x):\n        x = self.first(x)\n        x.register_hook(busy)\n        return self.second(x)\nmodel = DDP(Net())\noptimizer = optim.SGD(model.parameters(), lr=1e-4)\nwhile True:\n    train(batch, model)",
        STRAGGLER,
        "1",
        ("while time.perf_counter()", "end = time.perf_counter()"),
        computes=True,
    ),
    Slow(
        "braindecode/braindecode#89: a row of a table is looked up by iloc for each sample",
        "import pandas\nclass Windows(Dataset):\n    def __init__(self):\n        self.metadata = pandas.DataFrame({'target': range(5000), 'start': range(5000), 'name': 'a'})\n    def __len__(self):\n        return 5000\n    def __getitem__(self, index):\n        row = self.metadata.iloc[index]\n        return torch.full((64,), float(row['target'] + row['start']))\nwhile True:\n    for item in DataLoader(Windows(), batch_size=256):\n        train(item)",
        ("input",),
        EVERYONE,
        ("for item in DataLoader",),
        computes=True,
    ),
    Slow(
        "lightseekorg/TorchSpec#13: texts are dealt out in turns, each rank pads to its longest",
        "lengths = [chance.choice((1, 1, 1, 8)) for _ in range(20_000)]\nfor length in lengths:\n    time.sleep(0.008 * length)\n    train(batch)",
        ("uneven",),
        EVERYONE,
        (),
    ),
    Slow(
        "wandb/wandb#8666: the first rank's log blocks every second or so",
        "step = 0\ndef log(metrics):\n    if step % 40 == 0:\n        time.sleep(0.6)\nwhile True:\n    train(batch)\n    time.sleep(0.01)\n    step += 1\n    if rank == 0:\n        log({'loss': 1.0})",
        STRAGGLER,
        "0",
        ("time.sleep(0.6)", "log({"),
    ),
    Slow(
        "yenchenlin/nerf-pytorch#42: anomalies are looked for in each backward pass",
        "torch.autograd.set_detect_anomaly(True)\ndeep = DDP(nn.Sequential(*[layer for _ in range(40) for layer in (nn.Linear(16, 16), nn.ReLU())]))\nopt = optim.SGD(deep.parameters(), lr=1e-4)\nsmall = torch.ones(8, 16)\ntry:\n    while True:\n        loss = deep(small).sum()\n        loss.backward()\n        opt.step()\nfinally:\n    torch.autograd.set_detect_anomaly(False)",
        ("line",),
        EVERYONE,
        ("deep(small)", "loss.backward()"),
        computes=True,
    ),
    Slow(
        "huggingface/trl#3838: each metric is gathered by itself",
        "names = [f'metric{number}' for number in range(30)]\nwhile True:\n    train(batch)\n    for name in names:\n        dist.all_gather([torch.empty(1) for _ in range(3)], torch.ones(1))",
        ("small_collectives",),
        EVERYONE,
        ("dist.all_gather",),
        computes=True,
    ),
    Slow(
        "BatsResearch/labelmodels#4: the sum of the losses keeps the graph of each step",
        "running_loss = 0.0\nwide = DDP(nn.Linear(2000, 100))\nopt = optim.SGD(wide.parameters(), lr=1e-6)\nwhile True:\n    loss = wide(torch.randn(200, 2000)).pow(2).mean()\n    opt.zero_grad()\n    loss.backward(retain_graph=True)\n    opt.step()\n    running_loss = running_loss + loss * 1.0",
        ("memory",),
        EVERYONE,
        (),
        computes=True,
    ),
    Slow(
        "sgl-project/sglang#28067: objects pile up on one rank, and the collector walks through them",
        "leaked = []\nwhile True:\n    if rank == 1:\n        leaked.extend([number] for number in range(3000))\n    train(batch)\n    time.sleep(0.005)",
        ("straggler", "occasional", "collector", "memory"),
        "1",
        ("leaked.extend",),
        computes=True,
    ),
    Slow(
        "TianhongDai/hindsight-experience-replay#1: the whole buffer is copied for each sample",
        "import numpy as np\nbuffers = {name: np.ones((20_000, 50, 4), np.float32) for name in ('obs', 'goal', 'action')}\ndef sample():\n    episodes = {}\n    for key in buffers:\n        episodes[key] = buffers[key].copy()\n    return {key: value[:64] for key, value in episodes.items()}\nwhile True:\n    sample()\n    train(batch)\n    time.sleep(0.002)",
        ("line",),
        EVERYONE,
        ("buffers[key].copy()", "sample()"),
        computes=True,
    ),
]

STEADY = [
    Steady(
        "marin-community/marin#9224: all ranks collect garbage at the same steps",
        "import gc\ngc.disable()\ntry:\n    for step in range(1200):\n        time.sleep(0.02)\n        train(batch)\n        if step % 300 == 0: gc.collect()\nfinally:\n    gc.enable()",
    ),
    Steady(
        "meta-pytorch/torchtune#522: losses are read and written down every tenth step only",
        "total = torch.zeros(())\nfor step in range(1200):\n    time.sleep(0.02)\n    train(batch)\n    total += 1.0\n    if step % 10 == 9:\n        print(step, total.item())\n        total.zero_()",
    ),
    Steady(
        "AI-Hypercomputer/maxtext#324: the next batch is loaded while the step runs",
        "from concurrent.futures import ThreadPoolExecutor\ndef load():\n    time.sleep(0.015)\n    return torch.ones(8, 64)\nwith ThreadPoolExecutor(1) as pool:\n    coming = pool.submit(load)\n    for step in range(1200):\n        item, coming = coming.result(), pool.submit(load)\n        time.sleep(0.03)\n        train(item)",
    ),
    Steady(
        "microsoft/onnxruntime#10163: texts of like lengths are dealt to all ranks",
        "common = random.Random(7)\nfor step in range(1200):\n    time.sleep(0.008 * common.choice((1, 1, 1, 8)))\n    train(batch)",
    ),
]
