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
]

STEADY: list[Steady] = []
