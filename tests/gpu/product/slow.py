"""Slow training: what a rank measures of its device, and the cause that is named."""

from __future__ import annotations

import time

from kit.lab import Lab, experiment

from .session import Session

# The answers of the rank's own meter, kept as it gives them.
KEEP = """
import gc
from jupyter_dist.parts.slow.rank.meter import PaceMeter
meter = next(found for found in gc.get_objects() if isinstance(found, PaceMeter))
answers, answer = [], meter.answer
def keep(most):
    answers.append(answer(most))
    return answers[-1]
meter.answer = keep
try:
    print("utilization", torch.cuda.utilization())
except Exception as error:
    print("utilization", type(error).__name__, error)
"""

LOOP = """
import itertools, time
x = torch.ones(1 << 13, 1 << 13, device=device)
(x @ x).sum().item()
begun = time.monotonic()
for step in itertools.count():
    started = time.monotonic()
    y = x @ x
    y.sum().item()
    track(done=1, step=step)
    time.sleep(time.monotonic() - started)
    if started - begun > SECONDS:
        break
print(step, "steps")
"""

SHOW = """
for one in answers[-12:]:
    rows = sorted(one.get("samples", ()), key=lambda row: -row[1])[:4]
    print(one.get("execution_id") is not None, one.get("device"), one.get("seconds"), one.get("steps"), rows)
"""


@experiment(60, "A loop that reads a value of the device each step, which idles for half of the time: what is measured and named?",
            "device_sync at y.sum().item(), in 10 s")  # fmt: skip
def device_sync(lab: Lab) -> None:
    made = Session(lab)
    group = made.start(1)
    made.run(group, KEEP if not lab.dry else KEEP.replace("torch.cuda.utilization()", "None"))
    execution = group.submit(LOOP.replace("SECONDS", "5" if lab.dry else "25"), "all")
    begun, seen = time.monotonic(), None
    while not execution.done() and time.monotonic() - begun < 40:
        seen = execution.peek().execution.get("slowness")
        if seen:
            break
        time.sleep(0.2)
    lab.say(named=seen, seconds=round(time.monotonic() - begun, 1), table=execution.peek().execution.get("pace"))
    made.ended(group, execution, 40)
    made.run(group, SHOW, what="what the rank measured")
    made.end(group)
