"""Made-up looks of ranks, for the rules that judge the training of a cell."""

from __future__ import annotations

from jupyter_dist.parts.checks.judging.judge import judge
from jupyter_dist.parts.checks.judging.seen import Seen
from jupyter_dist.parts.checks.reports import (
    About,
    Batch,
    Left,
    Model,
    ModelCalls,
    StepLook,
    Value,
)
from jupyter_dist.transport.rows import CodePlace

LINE = CodePlace("<ipython-input-7-0123456789ab>", 12, "<module>", "opt.step()")
RANKS = (0, 1, 2, 3)


def ddp(averaging=RANKS, **fields):
    return Model("ddp", averaging, averaging, False)._replace(**fields)


def calls(batch, **fields):
    given = Batch(batch, 0.5, True, (8, 4), LINE) if batch else None
    return ModelCalls(True, 1, 1, 1, True, True, 0, 0, "ddp", given)._replace(**fields)


def look(rank, step, batch=None, gradient="g", weight="w", **fields):
    batch = f"rank {rank} step {step}" if batch is None else batch
    usual = {
        "place": LINE,
        "gradients": (Value(f"{gradient} {step}", 0.25), Value(f"{gradient} {step}b", 0.5)),
        "weights": (Value(f"{weight} {step}", 1.0), Value(f"{weight} {step}b", 2.0)),
        "settings": ({"lr": 0.1},),
        "calls": (calls(batch),),
        "left": Left(2, 0, (), 0, 0, ()),
        "about": About(("0.weight", "0.bias"), (ddp(),)),
    }
    return StepLook(0, step, "signature", **{**usual, **fields})


def judged(make, steps=range(1, 4), ranks=RANKS, **fields):
    """What is found if each of these ranks reports `make(rank, step)` for each of these steps."""
    seen = Seen(ranks=ranks, **fields)
    for step in steps:
        for rank in ranks:
            seen.add(rank, make(rank, step))
    return judge(seen)
