"""Hung collectives and deaths: named, freed, and what continues after them."""

from __future__ import annotations

import os
import time

from kit.lab import Lab, device_state, experiment

from .session import FREED_SECONDS, SYNC, WARM, Session, fresh, log_tail, messages, session, shown


@experiment(80, "Warm hang of rank 0: verdict, Interrupt, variables kept, next all_reduce.",
            "the verdict names all_reduce and rank 1; freed under 5 s; 2.0 after it; 40")  # fmt: skip
def hang(lab: Lab) -> None:
    with session(lab, 2) as (made, group):
        made.run(group, WARM)
        made.hang(group, "dist.all_reduce(t)\nprint(t.item())", "0", "item")
        made.run(group, "print(globals().get('kept'))", what="variables after it")


@experiment(150, "Other ways of waiting: synchronize, barrier, and a collective that is not waited for.",
            "the verdict names all_reduce and rank 1; freed under 5 s; 2.0 after it; 40")  # fmt: skip
def ways_of_waiting(lab: Lab) -> None:
    with session(lab, 2) as (made, group):
        made.run(group, WARM)
        for label, code in {
            "item": "dist.all_reduce(t)\nprint(t.item())",
            "synchronize": f"dist.all_reduce(t)\n{SYNC}",
            "barrier": "dist.barrier()",
        }.items():
            made.hang(group, code, "0", label)
            made.run(group, "print(globals().get('kept')); t = torch.ones(1, device=device)", what="variables after it")
        made.run(group, "dist.all_reduce(t) if rank == 0 else None", what="a collective that is begun, and not waited for",
                 seconds=5)  # fmt: skip
        made.hang(group, f"{SYNC}; dist.barrier()", "0", "the cell after it")


@experiment(100, "Cold hang: the very first collective on rank 0 alone. Verdict, Interrupt?",
            "a verdict, or a sentence that only killing helps; the group is usable at the end")  # fmt: skip
def hang_cold(lab: Lab) -> None:
    with session(lab, 2) as (made, group):
        made.run(group, "kept = 40 + rank")
        made.hang(
            group,
            "t = torch.ones(1, device=device); dist.all_reduce(t)\nprint(t.item())",
            "0",
            "first all_reduce on rank 0",
        )
        made.run(group, "print(globals().get('kept'))", what="variables after it")
    fresh(lab)
    with session(lab, 2) as (made, group):
        made.run(group, "kept = 40 + rank")
        made.hang(
            group,
            "t = torch.ones(1, device=device); dist.all_reduce(t)\nprint(t.item())",
            "1",
            "first all_reduce on rank 1",
        )


@experiment(100, "Groups join by device_id: seconds, memory, the first collective on rank 0 alone, subgroups, a restart.",
            "ready a little later; the first hang is freed like a warm one; subgroups work")  # fmt: skip
def eager(lab: Lab) -> None:
    with session(lab, 2) as (made, group):
        lab.say(device=device_state())
        made.run(group, "kept = 40 + rank")
        made.hang(
            group,
            "t = torch.ones(1, device=device); dist.all_reduce(t)\nprint(t.item())",
            "0",
            "first all_reduce on rank 0",
        )
        made.run(group, "print(globals().get('kept'))", what="variables after it")
        made.run(
            group,
            "sub = dist.new_group([0, 1]); t = torch.ones(1, device=device); dist.all_reduce(t, group=sub); print(t.item())",
        )
        made.run(group, "alone = dist.new_group([1]); print(rank)")
        lab.say(device=device_state())
        with lab.step("restart"):
            group.restart()
        made.run(group, WARM)


@experiment(100, "A rank is killed -9 in a collective: what the others get, replace, variables, next all_reduce.",
            "survivor ends with an error within seconds; replaced under 10 s; 2.0; 40")  # fmt: skip
def killed(lab: Lab) -> None:
    with session(lab, 2) as (made, group):
        made.run(group, WARM)
        execution = group.submit(
            f"v = torch.ones(1 << 22, device=device)\nwhile True:\n    dist.all_reduce(v); v.fill_(1)\n    {SYNC}"
        )
        time.sleep(3)
        asked = time.monotonic()
        os.kill(group.status().ranks[1].pid, 9)
        with lab.step("the survivor's cell") as found:
            found.update(shown(made.ended(group, execution, 25)))
            found["seconds_after_the_death"] = round(time.monotonic() - asked, 2)
            found["ranks"] = messages(group)
            found["exit"] = group.status().model["ranks"][1]["exit"]
        with lab.step("replace"):
            if group.status().state == "degraded":
                group.replace()
        made.run(group, "t = torch.ones(1, device=device); dist.all_reduce(t); print(t.item(), globals().get('kept'))")
        lab.say(log=log_tail(group, 0))


@experiment(80, "Interrupt of healthy training (half a second of matmul a step, an all_reduce each): does the group survive?",
            "KeyboardInterrupt on both, process group ok, 2.0 at once")  # fmt: skip
def healthy(lab: Lab) -> None:
    size, number = (400, 5) if lab.dry else (8192, 12)
    with session(lab, 2) as (made, group):
        made.run(group, WARM)
        for label, ranks in (("all", "all"), ("only rank 0", "0")):
            code = f"a = torch.ones({size}, {size}, device=device)\nsteps = 0\nwhile True:\n    for _ in range({number}): a = (a @ a).clamp(0, 1)\n    v = a.sum(); dist.all_reduce(v); v.item(); steps += 1"
            execution = group.submit(code)
            time.sleep(6)
            lab.say(case=label, verdict=execution.peek().execution.get("verdict"), ranks=messages(group))
            asked = time.monotonic()
            group.interrupt(ranks)
            with lab.step("interrupted", case=label) as found:
                found.update(shown(made.ended(group, execution, 15)))
                found["freed_after"] = round(time.monotonic() - asked, 2)
            lab.say(case=label, ranks=messages(group), log=[log_tail(group, rank) for rank in (0, 1)])
            made.run(group, "print(steps); t = torch.ones(1, device=device); dist.all_reduce(t); print(t.item())")


@experiment(100, "The same hang ten times in a row in one group: verdict, seconds, device memory.",
            "ten times freed; no growth of seconds or of memory")  # fmt: skip
def hang_ten(lab: Lab) -> None:
    with session(lab, 2) as (made, group):
        made.run(group, WARM)
        for number in range(10):
            begun = time.monotonic()
            if lab.left < 20 or not made.hang(group, "dist.all_reduce(t)\nprint(t.item())", "0", f"number {number}"):
                break
            lab.say(number=number, seconds=round(time.monotonic() - begun, 2), device=device_state())


@experiment(80, "Two groups on one device; a hang in one; what each sees of the other's memory.",
            "the second is not disturbed; the sidebar names both")  # fmt: skip
def two_groups(lab: Lab) -> None:
    made = Session(lab)
    first, second = made.start(2, name="first"), made.start(1, name="second")
    for group in (first, second):
        made.run(group, WARM)
    execution = first.submit("dist.all_reduce(t); print(t.item())", "0")
    time.sleep(1)
    made.run(second, f"import time; begun = time.monotonic(); a = torch.ones(2048, 2048, device=device)\nfor _ in range(50): a = (a @ a).clamp(0, 1)\n{SYNC}; print('seconds', round(time.monotonic() - begun, 3))",
             what="matmul beside a hung kernel")  # fmt: skip
    with lab.step("devices of the sidebar") as found:
        found["value"] = made.client.ask("GET", "devices")
    first.interrupt()
    with lab.step("the hung one") as found:
        found.update(shown(made.ended(first, execution, FREED_SECONDS)))
    made.run(second, WARM)
    made.end(first)
    made.run(second, WARM)
    made.end(second)


@experiment(100, "Tensor and data parallel groups: hangs in a subgroup, twice, and in both at once.",
            "the verdict names the group's own ranks both times; freed")  # fmt: skip
def subgroups(lab: Lab) -> None:
    with session(lab, 4) as (made, group):
        made.run(group, WARM)
        setup = ("rows = [dist.new_group([0, 1], group_desc='tensor-parallel'), dist.new_group([2, 3], group_desc='tensor-parallel')]\n"
                 "mine = rows[rank // 2]; t = torch.ones(1, device=device)\n"
                 "dist.all_reduce(t, group=mine); dist.all_reduce(t); print(t.item())")  # fmt: skip
        for number in (1, 2):
            made.run(group, setup, what="groups")
            made.hang(group, "dist.all_reduce(t, group=mine); print(t.item())", "0", f"subgroup, time {number}")
        made.run(group, setup, what="groups")
        made.hang(group, f"a = dist.all_reduce(t, group=mine, async_op=True); dist.all_reduce(t.clone()); {SYNC}; a.wait(); print(t.item())", "0",
                  "two communicators at once")  # fmt: skip


@experiment(80, "A gloo group on the device: all_reduce of CUDA tensors, hang, Interrupt; an NCCL group made by user code.",
            "freed under 5 s; an NCCL subgroup by hand works")  # fmt: skip
def gloo_on_device(lab: Lab) -> None:
    with session(lab, 2, backend="gloo") as (made, group):  # accelerator cuda
        made.run(group, WARM)
        made.hang(group, "dist.all_reduce(t); print(t.item())", "0", "gloo")
        made.run(group, "other = dist.new_group(backend='gloo' if device == 'cpu' or str(device) == 'cpu' else 'nccl')\n"
                        "u = torch.ones(1, device=device); dist.all_reduce(u, group=other); print(u.item())")  # fmt: skip
        made.hang(group, "dist.all_reduce(u, group=other); print(u.item())", "0", "NCCL subgroup of a gloo group")


@experiment(140, "A hang that lasts longer than torch's time limit (set to 10 s): verdict, then Interrupt after 35 s.",
            "still freed: torch's limit must not take the evidence away")  # fmt: skip
def late(lab: Lab) -> None:
    with session(lab, 2) as (made, group):
        made.run(group, WARM)
        made.run(
            group,
            "import datetime\ntorch.distributed.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=600 if str(device) == 'cpu' else 10), None); dist.all_reduce(t); print(t.item())",
        )
        made.hang(group, "dist.all_reduce(t)\nprint(t.item())", "0", "after 35 s", after=5.0 if lab.dry else 35.0)


USED = """
import os, gc
gc.collect()  # the frames of the interrupt hold its collective
print(len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")))
"""


@experiment(60, "Nine process groups, freed and created again four times: threads and descriptors of the ranks after each.",
            "four times freed; the numbers do not grow after the first time")  # fmt: skip
def old_connections(lab: Lab) -> None:
    with session(lab, 2) as (made, group):
        made.run(group, WARM)
        use_all = "for one in groups: dist.all_reduce(torch.ones(1, device=device), group=one)"
        made.run(group, f"groups = [dist.new_group([0, 1]) for _ in range(8)]\n{use_all}\n{USED}", what="groups")
        for number in range(4):
            made.hang(group, "dist.all_reduce(t)\nprint(t.item())", "0", f"time {number}")
            made.run(group, f"{use_all}\n{SYNC}\n{USED}", what=f"threads and descriptors {number}")


# Calls of the driver that may wait for a kernel that never ends, inside the driver and with its locks held.
DRIVER_CALLS = {
    "a full queue": "for _ in range(5000): t.add_(1)",
    "memory is freed": "del big; torch.cuda.empty_cache() if torch.cuda.is_available() else None",
    "a first kernel": "torch.erfinv(torch.full((8,), 0.5, device=device)).sum()",
    "memory is pinned": "torch.ones(1 << 22).pin_memory() if torch.cuda.is_available() else None",
}


@experiment(120, "A rank waits inside the driver behind a collective that never ends: does it still answer, is it freed?",
            "a verdict; never `unknown` or not responding; freed under 5 s")  # fmt: skip
def busy_driver(lab: Lab) -> None:
    with session(lab, 2) as (made, group):
        made.run(group, WARM)
        for label, call in DRIVER_CALLS.items():
            if lab.left > 20:
                begin = "big = torch.ones(1 << 26, device=device); t = torch.ones(1, device=device)"
                made.hang(group, f"{begin}\ndist.all_reduce(t)\n{call}\nprint(t.sum().item())", "0", label)
