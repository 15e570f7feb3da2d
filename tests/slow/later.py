"""More slow programs as public reports describe them, read after those of reported.py. Each names its report."""

from __future__ import annotations

from .kinds import EVERYONE, FIRST, STRAGGLER, Slow, Steady

__all__ = ["FIRST", "SLOW", "STEADY"]

UNEVEN = ("uneven", "input")
SLOW = [
    Slow(
        "Lightning-AI/pytorch-lightning#3329: each parameter is searched for NaN in each step",
        "weights = [torch.ones(40) for _ in range(3000)]\ndef detect_nan():\n    for weight in weights:\n        if not torch.isfinite(weight).all(): raise ValueError('nan')\nwhile True:\n    train(batch)\n    detect_nan()",
        ("line",),
        EVERYONE,
        ("if not torch.isfinite", "detect_nan()"),
        computes=True,
    ),
    Slow(
        "facebookresearch/detectron2#2993: the first rank writes all metrics in each step",
        "import json\nhistory = []\ndef write_metrics(metrics):\n    history.append(metrics)\n    del history[:-2000]\n    return json.dumps(history)\nwhile True:\n    train(batch)\n    if rank == 0:\n        write_metrics({str(k): k * 0.1 for k in range(40)})",
        STRAGGLER,
        "0",
        ("json.dumps", "write_metrics("),
        computes=True,
    ),
    Slow(
        "allenai/OLMo#326: the norm of each parameter goes to the host by itself",
        "weights = [torch.ones(60) for _ in range(2500)]\ndef metrics():\n    return {number: weight.norm().item() for number, weight in enumerate(weights)}\nwhile True:\n    train(batch)\n    metrics()",
        ("line",),
        EVERYONE,
        ("weight.norm().item()", "metrics()"),
        computes=True,
    ),
    Slow(
        "yhenon/pytorch-retinanet#104: the collater pads each image by itself",
        "class Images(Dataset):\n    def __len__(self):\n        return 100_000\n    def __getitem__(self, index):\n        return torch.ones(3, 20, 20)\ndef collater(images):\n    time.sleep(0.05)\n    return torch.ones(len(images), 64)\nfor item in DataLoader(Images(), batch_size=4, num_workers=0, collate_fn=collater):\n    train(item)",
        ("input",),
        EVERYONE,
        ("for item in DataLoader",),
    ),
    Slow(
        "marin-community/marin#9224: ranks collect garbage in steps of their own",
        "kept = [[number] for number in range(400_000)]\nstep = 0\nwhile True:\n    train(batch)\n    time.sleep(0.01)\n    step += 1\n    if step % 3 == rank: gc.collect()",
        ("uneven", "collector"),
        EVERYONE,
        (),
        computes=True,
    ),
    Slow(
        "ArrowLuo/CLIP4Clip#58: some videos take long to decode, on any rank",
        "class Videos(Dataset):\n    def __len__(self):\n        return 100_000\n    def __getitem__(self, index):\n        time.sleep(0.3 if (index + rank) % 5 == 0 else 0.002)\n        return torch.ones(64)\nfor item in DataLoader(Videos(), batch_size=1, num_workers=1, prefetch_factor=1):\n    train(item)",
        UNEVEN,
        EVERYONE,
        ("for item in DataLoader",),
    ),
    Slow(
        "AI-Hypercomputer/maxtext#1956: metrics go to a bucket in each step",
        "def write_scalar(name, value):\n    time.sleep(0.02)\nwhile True:\n    train(batch)\n    for name in ('loss', 'grad_norm'):\n        write_scalar(name, 0.5)",
        ("line", "blocked"),
        EVERYONE,
        ("time.sleep(0.02)", "write_scalar("),
    ),
    Slow(
        "pytorch/pytorch#13666: gradients are clipped in each step",
        "many = [torch.nn.Parameter(torch.ones(30)) for _ in range(3000)]\nfor p in many: p.grad = torch.ones(30)\nwhile True:\n    train(batch)\n    torch.nn.utils.clip_grad_norm_(many, 1.0, foreach=False)",
        ("line",),
        EVERYONE,
        ("clip_grad_norm_",),
        computes=True,
    ),
    Slow(
        "yzhangcs/parser#55: buckets of sentences are made again for each short epoch",
        "lengths = [number * 7919 % 601 for number in range(120_000)]\ndef buckets():\n    found = {}\n    for number, length in enumerate(lengths):\n        found.setdefault(length // 20, []).append(number)\n    return found\nwhile True:\n    buckets()\n    for _ in range(3):\n        train(batch)",
        ("line",),
        EVERYONE,
        ("found.setdefault", "for number, length", "buckets()"),
        computes=True,
    ),
    Slow(
        "facebookresearch/deit#81: more workers than cores, which start again for each epoch",
        "while True:\n    for item in DataLoader(Items(6, 0.0), batch_size=1, num_workers=6):\n        train(item)",
        ("input",),
        EVERYONE,
        ("for item in DataLoader",),
        computes=True,
    ),
    Slow(
        "BaderLab/saber#176: masks of attention are lists in Python in each step",
        "tokens = [number % 7 for number in range(300)] * 400\ndef masks(tokens):\n    return [[float(token > 0)] for token in tokens]\nwhile True:\n    mask = masks(tokens)\n    train(batch)\n    time.sleep(0.01)",
        ("line", "collector"),  # of the lists that the line makes
        EVERYONE,
        ("float(token > 0)", "masks(tokens)"),
        computes=True,
    ),
    Slow(
        "Tencent-Hunyuan/HunyuanVideo#208: a mask is filled element by element",
        "def causal(length):\n    mask = torch.zeros(length, length)\n    for i in range(length):\n        mask[i, : i + 1] = 1\n    return mask\nwhile True:\n    causal(4000)\n    train(batch)\n    time.sleep(0.01)",
        ("line",),
        EVERYONE,
        ("mask[i, : i + 1] = 1", "torch.zeros(length", "causal(4000)"),
        computes=True,
    ),
    Slow(
        "leggedrobotics/rsl_rl#48: observations become tensors one by one in each step",
        "observations = [[0.1 * number] * 30 for number in range(2000)]\ndef act(observations):\n    return torch.stack([torch.as_tensor(row) for row in observations])\nfor i in range(10_000):\n    act(observations)\n    train(batch)",
        ("line",),
        EVERYONE,
        ("torch.as_tensor(row)", "act(observations)"),
        computes=True,
    ),
    Slow(
        "pytorch/ignite#240: metrics of each sample are read by item()",
        "scores = torch.randn(4000)\ndef update(scores):\n    total = 0\n    for score in scores:\n        total += score.item() > 0\n    return total\nwhile True:\n    train(batch)\n    update(scores)\n    time.sleep(0.01)",
        ("line",),
        EVERYONE,
        ("for score in scores", "score.item()", "update(scores)"),
        computes=True,
    ),
    Slow(
        "ActiveVisionLab/nerfmm#22: the dataset resizes each image when it is asked for it",
        "import torch.nn.functional as F\nclass Images(Dataset):\n    def __len__(self): return 100_000\n    def __getitem__(self, index):\n        image = torch.ones(1, 3, 700, 700)\n        F.interpolate(image, scale_factor=0.7, mode='bicubic')\n        return torch.ones(64)\nfor item in DataLoader(Images(), batch_size=2):\n    train(item)\n    time.sleep(0.01)",
        ("input",),
        EVERYONE,
        ("for item in DataLoader",),
        computes=True,
    ),
    Slow(
        "huggingface/transformers#34059: the collate function tokenises, without workers",
        "import re\ncaption = 'a man plays the guitar on a stage in front of a crowd ' * 1500\ndef collate(items):\n    words = [re.findall(r'\\w+', caption) for _ in items]\n    return torch.ones(len(items), 64)\nfor item in DataLoader(Items(100_000, 0.0), batch_size=4, collate_fn=collate, num_workers=0):\n    train(item)\n    time.sleep(0.01)",
        ("input",),
        EVERYONE,
        ("for item in DataLoader",),
        computes=True,
    ),
    Slow(
        "starVLA/starVLA#453: the model's forward prepares its text and images",
        "class Policy(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = layers(2, 64)\n    def prepare(self, text):\n        return sum(ord(letter) for letter in text)\n    def forward(self, item):\n        self.prepare('pick up the red block ' * 15_000)\n        return self.net(item)\nmodel = DDP(Policy())\noptimizer = optim.SGD(model.parameters(), lr=1e-4)\nwhile True:\n    model(batch).sum().backward()\n    optimizer.step()\n    optimizer.zero_grad()",
        ("line",),
        EVERYONE,
        ("ord(letter)", "self.prepare("),
        computes=True,
    ),
    Slow(
        "vllm-project/speculators#1119: a reduce to rank 0 for each metric in each step",
        "metrics = {str(number): torch.ones(1) for number in range(40)}\nwhile True:\n    train(batch)\n    for value in metrics.values():\n        dist.reduce(value.clone(), dst=0)",
        ("small_collectives",),
        EVERYONE,
        ("dist.reduce(value",),
        computes=True,
    ),
    Slow(
        "bearpaw/pytorch-pose#28: after ten batches the next ones take seconds to load",
        "class Poses(Dataset):\n    def __len__(self): return 100_000\n    def __getitem__(self, index):\n        time.sleep(1.2 if index % 40 == 39 else 0.002)\n        return torch.ones(64)\nfor item in DataLoader(Poses(), batch_size=4, num_workers=1, prefetch_factor=1):\n    train(item)\n    time.sleep(0.02)",
        ("input",),
        EVERYONE,
        ("for item in DataLoader",),
    ),
    Slow(
        "lightseekorg/TorchSpec#86: the mask of blocks is made again in each forward pass",
        "def block_mask(length):\n    index = torch.arange(length)\n    return (index[:, None] >= index[None, :]).view(length // 10, 10, -1, 10).any(-1).any(1)\nwhile True:\n    mask = block_mask(3000)\n    train(batch)\n    time.sleep(0.01)",
        ("line",),
        EVERYONE,
        ("index[:, None]", "block_mask(3000)"),
        computes=True,
    ),
]

STEADY: list[Steady] = []
