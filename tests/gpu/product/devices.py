"""Devices: starting, memory, errors that stay, objects, captures, nodes, and the project's own tests."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kit.lab import Lab, device_state, experiment

from .session import SHOW_ENVIRONMENT, WARM, Session, log_tail, messages, session, shown

# The part of a push or a broadcast that a rank does, beside the least that it could take: a copy in the host, and one up.
TO_DEVICE = """
import time, os
from jupyter_dist.objects import files
path = os.path.join({folder!r}, "x")
if not os.path.exists(path): files.save(dict(x=big), [path])
begun = time.monotonic(); y = files.load(path, read_ahead=True)["x"]
torch.cuda.synchronize() if torch.cuda.is_available() else None
print("loaded", round(time.monotonic() - begun, 3), torch.equal(y, big), y.device)
del y
host = big.cpu(); pinned = torch.empty_like(host, pin_memory=torch.cuda.is_available()); up = torch.empty_like(big)
begun = time.monotonic(); pinned.copy_(host); up.copy_(pinned)
torch.cuda.synchronize() if torch.cuda.is_available() else None
print("least", round(time.monotonic() - begun, 3))
del host, pinned, up
"""


@experiment(90, "One rank over NCCL: start cold and warm, its environment, memory, devices, and what shutdown leaves.",
            "ready under 10 s, then 2 s; samples agree with the driver; nothing is left on the device")  # fmt: skip
def start(lab: Lab) -> None:
    lab.say(before=device_state())
    made = Session(lab)
    with lab.step("environments") as found:
        found["value"] = made.client.ask("GET", "environments")
    group = made.start(1)
    made.run(group, SHOW_ENVIRONMENT)
    made.run(group, WARM)
    made.run(
        group,
        f"x = torch.ones(1 << {20 if lab.dry else 28}, device=device); dist.all_reduce(x); print(x.sum().item(), device)",
    )
    with lab.step("memory of the rank, and as the driver says") as found:
        found["sample"] = group.memory().model["ranks"]
        found["smi"] = device_state()
    with lab.step("devices of the sidebar") as found:
        found["value"] = made.client.ask("GET", "devices")
    with lab.step("variables") as found:
        found["value"] = str(group.variables())[:1500]
    made.run(group, "del x")
    with lab.step("empty_cache") as found:
        found["freed"] = group.empty_cache()
        found["smi"] = device_state()
    made.run(
        group,
        "import time\nwhile True: t = torch.ones(64, device=device) * 2",
        seconds=2,
        what="interrupt of a loop on the device",
    )
    made.run(group, WARM)
    with lab.step("restart") as found:
        group.restart()
        found["note"] = group.model["note"]
    made.run(group, WARM)
    made.end(group)
    group = made.start(1)
    made.run(group, WARM)
    made.end(group)
    with lab.step("prepared") as found:
        found["value"] = made.client.ask("GET", "prepared")


@experiment(80, "Two ranks, then four: do they start, and does every collective work?", "2.0 and 4.0")
def start_many(lab: Lab) -> None:
    made = Session(lab)
    for number in (2, 4):
        group = made.start(number)
        made.run(group, SHOW_ENVIRONMENT)
        made.run(group, WARM)
        made.run(group, "parts = [torch.zeros(2, device=device) for _ in range(dist.get_world_size())]\n"
                        "dist.all_gather(parts, torch.full((2,), float(rank), device=device)); print(parts[-1].tolist())")  # fmt: skip
        made.run(
            group, "objects = [None] * dist.get_world_size(); dist.all_gather_object(objects, rank); print(objects)"
        )
        made.run(group, "c = torch.ones(1); dist.all_reduce(c); print(c)", what="all_reduce of a CPU tensor")
        made.run(group, "dist.barrier(); print('barrier')")
        made.end(group)


@experiment(80, "A device-side assert on one rank: what its cells say, the other rank, memory, Replace.",
            "every later cell fails alike until Replace; then 1.0; nothing says so yet")  # fmt: skip
def broken_device(lab: Lab) -> None:
    with session(lab, 2) as (made, group):
        made.run(group, WARM)
        bad = (
            "raise RuntimeError('dry')"
            if lab.dry
            else "torch.zeros(4, device=device)[torch.tensor([1 << 20], device=device)].sum().item()"
        )
        made.run(group, bad, "1", what="device-side assert")
        made.run(group, "print(torch.ones(1, device=device).item())", "1", what="the next cell")
        made.run(group, "print(kept)", "1", what="a cell without the device")
        with lab.step("memory") as found:
            found["sample"] = group.memory().model["ranks"]
        with lab.step("variables") as found:
            found["value"] = str(group.variables())[:800]
        with lab.step("pull of a CPU value") as found:
            found["value"] = group.pull("kept", rank=1)
        lab.say(ranks=messages(group), log=log_tail(group, 1), note=group.status().model["note"])  # with the Xid
        made.run(group, WARM, seconds=10, what="all_reduce of both")
        with lab.step("kill and replace"):
            if group.status().ranks[1].state != "dead":
                group.kill(1)
                time.sleep(1)
            group.replace()
        made.run(group, WARM)


@experiment(80, "Out of memory on one rank: the report, and what comes back; memory held by another process.",
            "the report names the variables and the numbers; after del the memory is free")  # fmt: skip
def out_of_memory(lab: Lab) -> None:
    with session(lab, 1) as (made, group):
        made.run(group, WARM)
        if lab.dry:
            made.run(group, "raise MemoryError('dry')")
            return
        made.run(
            group,
            "held = []\nwhile True: held.append(torch.empty(4 << 30, dtype=torch.uint8, device=device))",
            seconds=30,
        )
        with lab.step("memory") as found:
            found["sample"] = group.memory().model["ranks"]
            found["smi"] = device_state()
            found["variables"] = str(group.variables().holders)[:1500]
        made.run(group, "held.clear()")
        with lab.step("empty_cache") as found:
            found["freed"] = group.empty_cache()
            found["smi"] = device_state()
        made.run(
            group,
            "held = [torch.empty(4 << 30, dtype=torch.uint8, device=device) for _ in range(12)]; big = torch.empty(8 << 30, dtype=torch.uint8, device=device)",
        )
        second = made.start(1, name="other", devices=[0])
        made.run(
            second,
            "y = torch.empty(40 << 30, dtype=torch.uint8, device=device)",
            what="in a second group on the same device",
        )
        made.end(second)
        made.run(group, WARM)


@experiment(70, "push, pull, scatter, broadcast of CUDA tensors; %%profile with CUDA; torch.save.",
            "values the same, on the rank's device; kernels of NCCL are in the profile")  # fmt: skip
def objects(lab: Lab) -> None:
    with session(lab, 2) as (made, group):
        made.run(group, WARM)
        count = 1 << 16 if lab.dry else 1 << 28
        made.run(group, f"big = torch.arange({count}, device=device, dtype=torch.float32); print(big.device)")
        value = None
        with lab.step("pull of 1 GiB") as found:
            value = group.pull("big", rank=1)
            found["value"] = [str(value.device), float(value[-1]), list(value.shape)]
        with lab.step("push of 1 GiB") as found:
            group.push({"back": value})
        made.run(group, "print(back.device, float(back[-1]))")
        with lab.step("broadcast") as found:
            group.broadcast("big", src=1)
        made.run(group, "print(big.device, float(big[-1]))")
        with lab.step("gather") as found:
            found["value"] = {rank: float(one) for rank, one in group.gather("t.sum()").items()}
        for staged in (False, True):
            least = "4 << 20" if staged else "1 << 60"
            made.run(group, f"import jupyter_dist.objects.staging as s; s.MIN_BYTES = {least}; del s")
            for number in range(3):
                with lab.step("pull of 1 GiB again", staged=staged, number=number) as found:
                    again = group.pull("big", rank=1)
                    found["value"] = [float(again[0]), float(again[count // 2 + 1]), float(again[-1])]
                    found["same"] = bool((again == value).all())
                del again
            for number in range(2):
                with lab.step("broadcast again", staged=staged, number=number):
                    group.broadcast("big", src=1)
                made.run(group, "print(big.device, float(big[-1]), float(big.double().sum()))")
        for staged in (False, True):
            least = "4 << 20" if staged else "1 << 60"
            made.run(group, f"import jupyter_dist.objects.staging as s; s.MIN_BYTES = {least}; del s")
            for number in range(3):
                with lab.step("to the device from a file", staged=staged, number=number) as found:
                    found.update(shown(made.run(group, TO_DEVICE.format(folder=str(lab.folder)), "1")))
        del value
        with lab.step("profile") as found:
            result = group.profile("w = torch.ones(1024, 1024, device=device)\nfor _ in range(5):\n    w = w @ w / 1024; dist.all_reduce(w)\nprint(w.mean().item())",
                                   trace=str(lab.folder / "trace.json"))  # fmt: skip
            found.update(shown(result))
            found["profile"] = str(result.profile)[:2500]
            events = json.loads((lab.folder / "trace.json").read_text())
            events = events["traceEvents"] if isinstance(events, dict) else events
            found["names"] = sorted(
                {str(event.get("name"))[:60] for event in events if "nccl" in str(event.get("name")).lower()}
            )[:12]


@experiment(80, "A CUDA graph with collectives is captured for seconds in a cell, while the group looks into the rank.",
            "the capture goes through; also torch.compile's cudagraphs")  # fmt: skip
def graphs(lab: Lab) -> None:
    with session(lab, 1) as (made, group):
        made.run(group, WARM)
        if lab.dry:
            made.run(group, "import time; time.sleep(1)")
            return
        for mode in ("global", "thread_local"):
            execution = group.submit(
                "import time\ng = torch.cuda.CUDAGraph(); x = torch.ones(16, device=device); torch.cuda.synchronize()\n"
                f"with torch.cuda.graph(g, capture_error_mode='{mode}'):\n    begun = time.monotonic()\n"
                "    while time.monotonic() - begun < 5: x = x * 1.0; dist.all_reduce(x); time.sleep(0.05)\n"
                "g.replay(); torch.cuda.synchronize(); print('captured', x[0].item())"
            )
            for _ in range(8):
                time.sleep(0.5)
                with contextlib.suppress(Exception):
                    group.memory()
                    group.stacks()
            with lab.step("capture", mode=mode) as found:
                found.update(shown(made.ended(group, execution, 15)))
            made.run(group, "print(torch.ones(1, device=device).item())")


@experiment(90, "Two nodes on this machine by the public way (launcher `external`), a rank each, with NCCL_HOSTID in theirs.",
            "the same as with two machines: 2.0, a hang is freed")  # fmt: skip
def nodes(lab: Lab) -> None:
    made = Session(lab)
    fields: dict[str, Any] = (
        {"accelerator": "cpu", "num_ranks": 2} if lab.dry else {"accelerator": "cuda", "devices": 1, "backend": "nccl"}
    )
    group = made.client.start("nodes", wait=False, launcher="external", num_nodes=2, **fields)
    with lab.step("wait for the command to join"):
        deadline = time.monotonic() + 30
        while not group.status().get("join") and time.monotonic() < deadline:
            time.sleep(0.2)
    command = group.status().join
    lab.say(join=command)
    agents = []
    for number in range(2):
        own = {} if lab.dry or lab.num_gpus > 1 else {"NCCL_HOSTID": f"node-{number}"}
        own["CUDA_VISIBLE_DEVICES"] = "" if lab.dry else str(number % max(1, lab.num_gpus))
        agents.append(subprocess.Popen(command, shell=True, env={**os.environ, **own}))
    with lab.step("ready") as found:
        group.ready()
        found["nodes"] = group.status().model["nodes"]
    made.run(group, SHOW_ENVIRONMENT)
    made.run(group, WARM)
    made.hang(group, "dist.all_reduce(t); print(t.item())", "0", "over nodes")
    made.end(group)
    for agent in agents:
        with contextlib.suppress(subprocess.TimeoutExpired):
            agent.wait(5)


@experiment(240, "The project's own GPU tests: python -m pytest -m gpu tests/agent/test_gpu.py (in a checkout).",
            "passed; those for two GPUs are skipped on one")  # fmt: skip
def tests(lab: Lab) -> None:
    root = Path(os.environ.get("KIT_CHECKOUT", os.getcwd()))
    if not (root / "tests" / "agent" / "test_gpu.py").exists():
        lab.say(skipped=f"{root} is no checkout")
        return
    # A copy of the tests alone: they run against the installed package.
    copy = lab.folder / "checkout"
    for name in ("tests", "pyproject.toml", "package.json", "docs", "examples", "benchmarks"):
        source = root / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
        elif source.exists():
            copy.mkdir(exist_ok=True)
            shutil.copy(source, copy / name)
    # The harness starts agents from the files of the package.
    package = importlib.util.find_spec("jupyter_dist")
    assert package is not None
    assert package.origin is not None
    shutil.copytree(Path(package.origin).parent, copy / "jupyter_dist", dirs_exist_ok=True)
    chosen = ["--collect-only"] if lab.dry else []
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "gpu",
        "tests/agent/test_gpu.py",
        "-q",
        "--no-header",
        "-rA",
        *chosen,
    ]
    with lab.step("pytest") as found:
        done = subprocess.run(
            command, cwd=copy, capture_output=True, text=True, timeout=max(20.0, lab.left - 5), check=False
        )
        found |= {"code": done.returncode, "out": done.stdout[-5000:], "err": done.stderr[-1500:]}
