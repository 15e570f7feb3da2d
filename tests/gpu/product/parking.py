"""Parking groups: 20 GB on one device, with one, two and four ranks, and what is on the device meanwhile."""

from __future__ import annotations

from typing import Any

from kit.lab import Lab, device_state, experiment

from .session import WARM, Session

TRAIN = """
from torch.nn.parallel import DistributedDataParallel
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(256, 256).to(device))
def step(number):
    torch.manual_seed(number + rank)
    loss = model(torch.randn(8, 256).to(device)).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
            parameter.grad.zero_()
    return loss.item()
print([step(number) for number in range(3)])
"""

GRAPH = """
fixed = torch.ones(1 << 20, device=device)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph): doubled = fixed * 2
graph.replay(); torch.cuda.synchronize(); print(doubled.sum().item())
"""


def _round(made: Session, group: Any, to: str, by: str) -> None:
    """Park once, look at the device, and resume by a request or by a cell."""
    with made.lab.step("park", to=to) as found:
        group.park(to=to)
        found |= {"parked": group.status().model["parked"], "note": group.model["note"], "smi": device_state()}
    if by == "request":
        with made.lab.step("resume", to=to) as found:
            group.resume()
            found["note"] = group.model["note"]
    made.run(group, "print(int(big.sum()) == before, view[0].item(), view.data_ptr() - big.data_ptr())",
             what=f"checksum and a view, resumed by a {by}")  # fmt: skip
    made.run(group, WARM)
    made.run(group, "print(step(3))", what="a step of DDP")


@experiment(280, "A group with 20 GB on one device is parked and resumed, with 1, 2 and 4 ranks; a cell resumes; files; a captured graph.",
            "under 1 GB on the device while parked; True 5 40 each time; all_reduce and DDP go on; seconds")  # fmt: skip
def park(lab: Lab) -> None:
    made = Session(lab)
    for number in (1, 2, 4):
        group = made.start(number)
        made.run(group, WARM)
        size = (1 << 16) if lab.dry else (20 << 30) // number // 8
        made.run(group, f"big = torch.arange({size}, dtype=torch.int64, device=device); view = big[5:9]\n"
                        "before = int(big.sum()); print(before)")  # fmt: skip
        made.run(group, TRAIN)
        lab.say(loaded=number, smi=device_state())
        for to, by in (("host", "request"), ("host", "cell"), ("file", "cell")):
            if to == "file" or not lab.dry:
                _round(made, group, to, by)
        if not lab.dry and number == 1:
            made.run(group, GRAPH, what="capture a graph")
            _round(made, group, "host", "request")  # by the driver alone: addresses stay
            made.run(group, "fixed.fill_(3); graph.replay(); torch.cuda.synchronize(); print(doubled.sum().item())",
                     what="replay it")  # fmt: skip
        made.end(group)


@experiment(150, "A parked group makes room: another one takes most of the device; resuming without room is named, and loses nothing.",
            "the second group computes; the first stays parked with a sentence, and is resumed when the second has ended")  # fmt: skip
def park_for_another(lab: Lab) -> None:
    made = Session(lab)
    group = made.start(1, name="first")
    made.run(group, "big = torch.arange(1 << 16, device=device)" if lab.dry else
             "big = torch.ones(torch.cuda.mem_get_info()[1] // 2, dtype=torch.uint8, device=device)")  # fmt: skip
    made.run(group, "before = int(big[::4096].sum()); print(before)")
    with lab.step("park by the start of another group") as found:
        if lab.dry:
            group.park(to="file")
        second = made.client.start("second", **({"num_ranks": 1, "accelerator": "cpu"} if lab.dry else
                                                {"devices": [0], "accelerator": "cuda", "park": ["first"]}))  # fmt: skip
        found |= {"first": group.status().state, "note": second.model["note"], "smi": device_state()}
    made.run(second, "x = torch.ones(8)" if lab.dry else
             "x = torch.ones(torch.cuda.mem_get_info()[0] - (4 << 30), dtype=torch.uint8, device=device)",
             what="take the device")  # fmt: skip
    with lab.step("resume without room") as found:
        group.resume()
    lab.say(first=group.status().state, note=group.model["note"], smi=device_state())
    made.end(second)
    with lab.step("resume with room") as found:
        group.resume()
        found["note"] = group.model["note"]
    made.run(group, "print(int(big[::4096].sum()) == before)")
    made.run(group, WARM)
    made.end(group)
