"""Loops of hundreds of steps: errors that begin after step 200, and innocent loops. Rules and looks must last as long as
training does.

An error sets `began` to the time at which it begins.
"""

from __future__ import annotations

from .kinds import FIRST, STEP, Right, Wrong

__all__ = ["FIRST", "RIGHT", "WRONG"]

LOOP = (
    "for i in range(480):\n    opt.zero_grad()\n    loss_of(model(batch())).backward()\n    opt.step()\n"
    "    time.sleep(0.008)"
)
RATE = "optim.SGD(model.parameters(), lr=0.01)"
BEGINS = "    if i == 220:\n        began = time.time()\n"


def from_220(line: str, other: str, loop: str = LOOP) -> str:
    """Return the loop with another line from step 220 on."""
    begins = loop.replace("range(480):\n", f"range(480):\n{BEGINS}")
    assert line in begins
    return begins.replace(line, f"({line} if i < 220 else {other})")


def at_220(code: str, loop: str = LOOP) -> str:
    """Return the loop with code that runs once, before step 220."""
    lines = "".join(f"        {line}\n" for line in code.splitlines())
    return loop.replace("range(480):\n", f"range(480):\n{BEGINS}{lines}")


WRONG = [
    Wrong(
        "a module that is unwrapped for an evaluation, and not wrapped again",
        at_220("model = model.module"),
        ("inner_module",),
        line=STEP,
    ),
    Wrong(
        "an evaluation that leaves its mode, late",
        f"model = DDP(net(nn.Dropout(0.5)))\nopt = {RATE}\n"
        + at_220("model.eval()\nwith torch.no_grad():\n    model(X)"),
        ("training_in_eval_mode",),
        line=STEP,
    ),
    Wrong(
        "a file with NaN on rank 1, late",
        at_220("pass")
        .replace(
            "    opt.zero_grad()\n",
            "    x = batch()\n    x[0] *= float('nan') if i >= 220 and rank == 1 else 1.0\n    opt.zero_grad()\n",
        )
        .replace("model(batch())", "model(x)"),
        ("not_finite",),
        "1",
        STEP,
    ),
    Wrong(
        "zero_grad that ends with the warm-up",
        from_220("opt.zero_grad()", "None"),
        ("not_zeroed",),
        line=STEP,
    ),
    Wrong(
        "the best checkpoint, loaded on rank 0 alone",
        at_220(
            "if rank == 0:\n    model.module.load_state_dict({k: v + 0.1 for k, v in model.module.state_dict().items()})"
        ),
        ("replicas_differ",),
        line=STEP,
    ),
    Wrong(
        "a second phase whose loader has no sampler",
        "many = torch.randn(8000, 4, generator=torch.Generator().manual_seed(5))\n"
        "first = iter(DataLoader(many, 8, sampler=DistributedSampler(many)))\nsecond = iter(DataLoader(many, 8))\n"
        + from_220("next(first)", "next(second)", LOOP.replace("batch()", "next(first)")),
        ("same_batch",),
    ),
    Wrong(
        "a body that is unfrozen in the middle, late",
        f"plain = net()\nplain[0].requires_grad_(False)\nmodel = DDP(plain)\nopt = {RATE}\n"
        + at_220("plain[0].requires_grad_(True)"),
        ("changed_after_wrap",),
        line=STEP,
    ),
    Wrong(
        "a model that is built again in the middle, and not its optimizer",
        at_220("torch.manual_seed(3)\nmodel = DDP(net())"),
        ("other_optimizer",),
        line=STEP,
    ),
    Wrong(
        "a learning rate that falls by the score of each rank, late",
        at_220("opt.param_groups[0]['lr'] *= 0.1 ** rank"),
        ("settings_differ",),
        line=STEP,
    ),
    Wrong(
        "a schedule that ends at half of the steps",
        "scheduler = optim.lr_scheduler.LinearLR(opt, 1.0, 0.0, total_iters=220)\n"
        + at_220("pass", LOOP.replace("    opt.step()\n", "    opt.step()\n    scheduler.step()\n")),
        ("zero_learning_rate",),
        line=STEP,
    ),
    Wrong(
        "a GradScaler that skips every step, late",
        "scaler = torch.amp.GradScaler('cpu', init_scale=4.0)\n"
        + at_220("pass").replace(
            "loss_of(model(batch())).backward()\n    opt.step()",
            "scaler.scale(loss_of(model(batch())) * (math.inf if i >= 220 else 1.0)).backward()\n"
            "    scaler.step(opt)\n    scaler.update()",
        ),
        ("steps_skipped",),
        line=("scaler.step(opt)",),
    ),
]

RIGHT = [
    Right("DDP, 480 steps", LOOP),
    Right(
        "a warm-up, a cosine and a clip, 480 steps",
        "warm = optim.lr_scheduler.LinearLR(opt, 0.01, total_iters=40)\n"
        "then = optim.lr_scheduler.CosineAnnealingLR(opt, 440)\n"
        "scheduler = optim.lr_scheduler.SequentialLR(opt, [warm, then], [40])\n"
        + LOOP.replace(
            "    opt.step()\n",
            "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    opt.step()\n    scheduler.step()\n",
        ),
    ),
    Right(
        "epochs with an evaluation and a checkpoint after each, 384 steps",
        f"model = DDP(net(nn.BatchNorm1d(8), nn.Dropout(0.1)))\nopt = {RATE}\nloader = DataLoader(data, 4, sampler=DistributedSampler(data))\n"
        "plateau = optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)\nfor epoch in range(12):\n    loader.sampler.set_epoch(epoch)\n    model.train()\n"
        "    for x, y in loader:\n        opt.zero_grad()\n        loss_of(model(x), y).backward()\n        opt.step()\n        time.sleep(0.008)\n"
        "    model.eval()\n    total = torch.zeros(1)\n    with torch.no_grad():\n        for x, y in DataLoader(data, 16, sampler=DistributedSampler(data, shuffle=False)):\n"
        "            total += loss_of(model(x), y)\n        dist.all_reduce(total)\n    plateau.step(total.item())\n"
        "    if rank == 0:\n        torch.save(model.state_dict(), os.path.join(tempfile.gettempdir(), 'jupyter_dist_test_best.pt'))",
    ),
    Right(
        "local SGD with an average each 100 steps, in no_sync of DDP",
        "with model.no_sync():\n"
        + "".join(f"    {line}\n" for line in LOOP.splitlines())
        + "        if i % 100 == 99:\n            for p in model.parameters():\n                dist.all_reduce(p.data)\n"
        "                p.data /= world_size",
    ),
    Right(
        "local SGD from step 200 on, after steps that average",
        "def local(i):\n    return model.no_sync() if i >= 200 else contextlib.nullcontext()\n"
        + LOOP.replace(
            "    loss_of(model(batch())).backward()\n",
            "    with local(i):\n        loss_of(model(batch())).backward()\n",
        )
        + "\n    if i % 50 == 49:\n        for p in model.parameters():\n            dist.all_reduce(p.data)\n            p.data /= world_size",
        before=(("all", "import contextlib"),),
    ),
    Right(
        "a body that is unfrozen after half of the steps, and wrapped again",
        f"plain = net()\nplain[0].requires_grad_(False)\nmodel = DDP(plain)\nopt = {RATE}\n"
        + LOOP.replace(
            "range(480):\n",
            "range(480):\n    if i == 220:\n        plain[0].requires_grad_(True)\n        model = DDP(plain)\n"
            f"        opt = {RATE}\n",
        ),
    ),
    Right(
        "an accumulation with no_sync, 480 passes",
        "import contextlib\n"
        + LOOP.replace("    opt.zero_grad()\n", "    if i % 4 == 0:\n        opt.zero_grad()\n")
        .replace("    opt.step()\n", "    if i % 4 == 3:\n        opt.step()\n")
        .replace(
            "    loss_of(model(batch())).backward()\n",
            "    with contextlib.nullcontext() if i % 4 == 3 else model.no_sync():\n        loss_of(model(batch())).backward()\n",
        ),
    ),
    Right(
        "a GAN, 480 steps",
        "g, d = DDP(net(nn.BatchNorm1d(8))), DDP(nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 1)))\n"
        "og, od = optim.Adam(g.parameters(), lr=0.01), optim.Adam(d.parameters(), lr=0.01)\nfor i in range(480):\n"
        "    with torch.no_grad():\n        fake = g(batch())\n    od.zero_grad()\n    (d(fake).mean() - d(torch.randn(8, 1, generator=mine)).mean()).backward()\n    od.step()\n"
        "    if i % 4 == 3:\n        og.zero_grad()\n        (-d(g(batch())).mean()).backward()\n        og.step()\n    time.sleep(0.004)",
    ),
    Right(
        "FSDP2, 480 steps",
        f"from torch.distributed.fsdp import fully_shard\nmodel = net()\nfully_shard(model[0])\nfully_shard(model)\nopt = {RATE}\n"
        + LOOP,
    ),
    Right(
        "gradients averaged by hand, and a rank that is slower, 480 steps",
        f"model = net()\nopt = {RATE}\n"
        + LOOP.replace(
            "    opt.step()\n",
            "    for p in model.parameters():\n        dist.all_reduce(p.grad)\n        p.grad /= world_size\n    opt.step()\n",
        ).replace("0.008", "0.004 + 0.006 * rank"),
    ),
    Right(
        "an average of the weights that takes their place at the end (SWA)",
        "mean = optim.swa_utils.AveragedModel(model.module)\n"
        + LOOP
        + "\n    if i > 300 and i % 20 == 0:\n        mean.update_parameters(model.module)\nmodel.module.load_state_dict(mean.module.state_dict())",
    ),
    Right(
        "separate models, 480 steps",
        f"torch.manual_seed(rank)\nmodel = net()\nopt = optim.SGD(model.parameters(), lr=0.01 * (1 + rank))\n{LOOP}",
    ),
]
