"""Slow programs as public reports describe them, read after the rules had been written. Each names its report."""

from __future__ import annotations

from .kinds import FIRST, STRAGGLER, Slow, Steady

__all__ = ["FIRST", "SLOW", "STEADY"]

UNEVEN = ("uneven", "input")

SLOW = [
    Slow(
        "open-mmlab/OpenPCDet#520: workers start for each short epoch",
        "while True:\n    for item in DataLoader(Items(4, 0.0), batch_size=1, num_workers=2):\n        train(item)",
        ("input",),
        line=("in DataLoader",),
    ),
    Slow(
        "facebookresearch/SLIP#22: every few batches take long to load",
        "class Images(Dataset):\n    def __len__(self):\n        return 100_000\n    def __getitem__(self, index):\n"
        "        time.sleep(0.25 if index % 4 == 3 else 0.005)\n        return torch.ones(64)\n"
        "for item in DataLoader(Images(), batch_size=1, num_workers=1, prefetch_factor=1):\n    train(item)",
        ("input",),
        line=("in DataLoader",),
    ),
    Slow(
        "BiomedSciAI/fuse-med-ml#267: each batch is taken apart into samples",
        "rows = {str(key): list(range(40_000)) for key in range(10)}\ndef uncollate(rows):\n    found = []\n"
        "    for index in range(40_000):\n        found.append({key: rows[key][index] for key in rows})\n    return found\n"
        "while True:\n    train(batch)\n    uncollate(rows)",
        ("line",),
        line=("found.append", "for index in", "uncollate(rows)", "for key in rows"),
        computes=True,
    ),
    Slow(
        "richarddwang/electra_pytorch#21: the tokenizer runs in each step",
        "words = ['word%d' % number for number in range(300_000)]\nvocabulary = {word: number for number, word in enumerate(words)}\n"
        "def encode(words):\n    return [vocabulary.get(word.lower(), 0) for word in words]\n"
        "while True:\n    tokens = encode(words)\n    train(batch)",
        ("line",),
        line=("vocabulary.get", "encode(words)"),
        computes=True,
    ),
    Slow(
        "huggingface/transformers#14428: the tokenizer is the collate function",
        "class Texts(Dataset):\n    def __len__(self):\n        return 100_000\n    def __getitem__(self, index):\n        return 'some words'\n"
        "def collate(texts):\n    time.sleep(0.06)\n    return torch.ones(len(texts), 64)\n"
        "for item in DataLoader(Texts(), batch_size=4, collate_fn=collate):\n    train(item)",
        ("input",),
        line=("in DataLoader",),
    ),
    Slow(
        "lucidrains/ema-pytorch#5: the average of weights is updated one by one on the CPU",
        "weights = [torch.ones(60_000) for _ in range(300)]\naverage = [torch.ones(60_000) for _ in range(300)]\n"
        "while True:\n    train(batch)\n    for mine, other in zip(average, weights):\n        mine.mul_(0.99).add_(other, alpha=0.01)",
        ("line",),
        line=("mine.mul_", "for mine, other"),
        computes=True,
    ),
    Slow(
        "LAION-AI/Anh#10: rank 0 sends its metrics to a server in each step",
        "def log(metrics):\n    time.sleep(0.05)\nwhile True:\n    train(batch)\n    time.sleep(0.01)\n    if rank == 0:\n        log({'loss': 1.0})",
        STRAGGLER,
        "0",
        ("time.sleep(0.05)", "log({"),
    ),
    Slow(
        "open-mmlab/mmpretrain#350: the loader of one rank cannot keep up",
        "for item in DataLoader(Items(100_000, 0.06 if rank == 1 else 0.005), num_workers=1, prefetch_factor=1):\n    train(item)\n    time.sleep(0.005)",
        STRAGGLER,
        "1",
        ("in DataLoader",),
    ),
    Slow(
        "JieQin-AI/MGD-SSSS#2: the first rank has calculations more",
        "def visualise(image):\n    total = 0.0\n    for row in range(900_000):\n        total += row * 0.5\n    return total\n"
        "while True:\n    train(batch)\n    if rank == 0:\n        visualise(batch)",
        STRAGGLER,
        "0",
        ("total += row", "for row in", "visualise(batch)"),
        computes=True,
    ),
    Slow(
        "allenai/OLMo#279: a metric gathers objects of all ranks in each step",
        "values = {'loss': [float(number) for number in range(500_000)]}\nwhile True:\n    train(batch)\n"
        "    found = [None] * dist.get_world_size()\n    dist.all_gather_object(found, values)\n    sum(map(len, found))",
        ("objects",),
        line=("all_gather_object",),
        computes=True,
    ),
]

STEADY = [
    Steady(
        "instructlab/training#566: the first rank saves once, while the others go on to the next forward",
        "for step in range(400):\n    train(batch)\n    time.sleep(0.02)\n    if step == 60 and rank == 0:\n"
        "        torch.save(torch.ones(1_000_000), os.path.join(folder, 'last.pt'))",
    ),
    Steady(
        "pytorch/pytorch#59433: ranks that differ a little",
        "for step in range(400):\n    time.sleep(0.03 + 0.001 * rank)\n    train(batch)",
    ),
]
