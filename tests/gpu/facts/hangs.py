"""Collectives that hang: what shows it, and what frees them."""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kit.lab import Lab, error_text, experiment
from kit.looks import DUMPS, Watcher, abort_by, recorders
from kit.ranks import FREE_SECONDS, QUICK_DUMP, Rank, Ranks, clean, start_ranks


@experiment(40, "Which recorder holds NCCL's collectives, and which gloo's? One entry whole.",
            "NCCL's in _dump_nccl_trace_json, gloo's in _dump_fr_trace_json; each 8 entries; under 5 ms")  # fmt: skip
def two_recorders(lab: Lab) -> None:
    def rank(r: Rank) -> None:
        import torch
        import torch.distributed as dist

        r.join()
        for _ in range(8):
            r.all_reduce()
        r.sync()
        time.sleep(0.3)  # torch's watchdog retires entries
        r.say(after="8 of the default group", recorders=recorders(whole=True))
        other = dist.new_group(backend="gloo")
        for _ in range(3):
            dist.all_reduce(torch.ones(1), group=other)
        r.say(after="and 3 of a gloo group", recorders=recorders())
        from torch._C import _distributed_c10d as bindings

        for name in DUMPS:
            for arguments in ((False, False), (True, True)):
                with r.step(f"{name}{arguments}") as found:
                    found["characters"] = len(getattr(bindings, name)(*arguments))
        with r.step("sequence number of the default group") as found:
            found["value"] = dist.group.WORLD._get_sequence_number_for_group()

    lab.say(codes=start_ranks(lab, 1, rank).wait(30))


WAITS: dict[str, Callable[[Any, Any], Any]] = {
    # What the main thread calls after (or as) the collective that rank 1 does not call.
    "item": lambda torch, value: value[0].item(),
    "synchronize": lambda torch, value: torch.cuda.synchronize() if value.is_cuda else None,
    "cpu": lambda torch, value: value.cpu(),
    "event": lambda torch, value: _event(torch) if value.is_cuda else None,
    "print": lambda torch, value: str(value),
}


def _event(torch: Any) -> None:
    event = torch.cuda.Event()
    event.record()
    event.synchronize()


def hang_once(r: Rank, label: str, wait: str, how: str, both: bool, after: float = 1.5, looks: bool = True) -> bool:
    """Rank 0 calls a collective that rank 1 does not call, a side thread aborts; then both join again."""
    import torch
    import torch.distributed as dist

    if not r.meet(f"begin-{label}", 30):
        r.say(case=label, failed="the other rank is gone")
        return False
    if r.rank == 0:
        watcher = Watcher(r, how, after, label, looks=looks)
        value = r.ones()
        watcher.start()
        begun = time.monotonic()
        try:
            if wait == "barrier":
                dist.barrier()
                got: Any = "returned"
            else:
                dist.all_reduce(value)
                called = round(time.monotonic() - begun, 3)
                got = [str(WAITS[wait](torch, value))[:200], f"the call itself took {called}"]
        except Exception as err:
            got = error_text(err)
        r.say(case=label, wait=wait, freed_seconds_after_abort=watcher.done(), got=got)
        with r.step("compute on the device after it", case=label) as found:
            found["value"] = float((torch.ones(64, 64, device=r.device) @ torch.ones(64, 64, device=r.device)).sum())
        r.flag(f"freed-{label}")
    else:
        deadline = time.monotonic() + after + FREE_SECONDS * 2 + 5
        while not (r.lab.folder / f"flag-freed-{label}").exists():
            if time.monotonic() > deadline or (r.lab.folder / "flag-over").exists():
                r.say(case=label, failed="rank 0 was not freed")
                return False
            if r.lab.dry and (r.lab.folder / f"flag-come-{label}").exists():
                dist.barrier() if wait == "barrier" else dist.all_reduce(r.ones())
                r.await_flag(f"freed-{label}")
            time.sleep(0.02)
        if both:
            with r.step("abort of the idle rank", case=label):
                abort_by("nothing" if r.lab.dry else how)
    with r.step("leave", case=label):
        r.leave()
    with r.step("join again", case=label):
        r.join()
    with r.step("all_reduce after it", case=label) as found:
        found["value"] = r.all_reduce()
        found["device_mib"] = r.used_mib()
    return True


@experiment(75, "Warm hang: rank 1 does not call. What shows it, does abort free rank 0, do both go on? Ways of waiting.",
            "not_retired names it; freed within 1 s, no exception needed; all_reduce 2.0 after it")  # fmt: skip
def hang_warm(lab: Lab) -> None:
    def rank(r: Rank) -> None:
        r.join()
        for _ in range(3):
            r.all_reduce()
        for wait in ("item", "synchronize", "barrier", "event", "cpu"):
            if not hang_once(r, wait, wait, "product", both=False):
                return

    lab.say(codes=start_ranks(lab, 2, rank).wait(70))


@experiment(70, "The same ten times in a row: does it get slower, does device memory stay?",
            "each time 2.0; the same device_mib at the end as after the first")  # fmt: skip
def hang_ten(lab: Lab) -> None:
    def rank(r: Rank) -> None:
        r.join()
        r.all_reduce()
        for number in range(10):
            label = f"{number}"
            if not hang_once(r, label, "item", "product", both=False, after=0.3, looks=number in (0, 9)):
                return

    lab.say(codes=start_ranks(lab, 2, rank).wait(65))


@experiment(110, "Cold hang: the first collective, in ncclCommInitRank. Is it in a record, can anything free it?",
            "nobody knows; eager or non-blocking communicators should be freed")  # fmt: skip
def hang_cold(lab: Lab) -> None:
    def rank(waiter: int, how: str, label: str, eager: bool = False) -> Callable[[Rank], None]:
        def run(r: Rank) -> None:
            import torch.distributed as dist

            if r.rank == waiter:
                watcher = Watcher(r, how.replace("store", f"store:{r.lab.folder}/store-0"), 2.0, label)
                watcher.start()
                begun = time.monotonic()
                try:
                    r.join(eager=eager)
                    joined = round(time.monotonic() - begun, 2)
                    value = r.ones()
                    dist.all_reduce(value)
                    called = round(time.monotonic() - begun, 2)
                    got: Any = [float(value[0].item()), joined, called]
                except Exception as err:
                    got = error_text(err)
                r.say(case=label, freed_seconds_after_abort=watcher.done(), got=got)
                r.flag("over")
            else:
                if not eager:
                    r.join()
                deadline = time.monotonic() + 14
                while time.monotonic() < deadline and not (r.lab.folder / "flag-over").exists():
                    if r.lab.dry and (r.lab.folder / f"flag-come-{label}").exists():
                        if eager:
                            r.join()
                        dist.all_reduce(r.ones())
                        break
                    time.sleep(0.05)

        return run

    cases = [
        ("rank 0 in ncclCommInitRank", 0, "product", False, {}),
        ("rank 1 waits for the id in the store", 1, "product", False, {}),
        ("rank 1 waits for the id, its store is broken", 1, "store", False, {}),
        ("non-blocking communicators", 0, "product", False, {"TORCH_NCCL_USE_COMM_NONBLOCKING": "1"}),
        ("eager, rank 1 not there", 0, "product", True, {}),
        ("eager and non-blocking, rank 1 not there", 0, "product", True, {"TORCH_NCCL_USE_COMM_NONBLOCKING": "1"}),
    ]
    for label, waiter, how, eager, env in cases:
        lab.say(case=label, codes=start_ranks(lab, 2, rank(waiter, how, label, eager), **env).wait(20))
        clean(lab)


@experiment(60, "Rank 1 is killed -9 in a collective: what does rank 0 get, and after how long? Abort, and join again.",
            "an error or a hang; freed by abort; how long abort takes (60 s would be the watchdog's lock)")  # fmt: skip
def peer_killed(lab: Lab) -> None:
    def rank(env_label: str) -> Callable[[Rank], None]:
        def run(r: Rank) -> None:
            import torch.distributed as dist

            r.join()
            r.all_reduce()
            r.meet("ready")
            if r.rank == 1:
                value = r.ones(1 << 22)
                while True:
                    dist.all_reduce(value)
                    if not r.lab.dry:
                        r.sync()
            watcher = Watcher(r, "product", 8.0, env_label)
            watcher.start()
            begun, number = time.monotonic(), 0
            try:
                value = r.ones(1 << 22)
                while time.monotonic() - begun < 20:
                    dist.all_reduce(value)
                    r.sync()
                    number += 1
                    if number == 3:
                        r.flag("kill")
                    if watcher.aborted_at is not None:
                        break
                got: Any = f"{number} all_reduces"
            except Exception as err:
                got = error_text(err)
            r.say(case=env_label, seconds=round(time.monotonic() - begun, 2), got=got, freed=watcher.done(),
                  recorders=recorders())  # fmt: skip
            with r.step("a second collective after the error", case=env_label) as found:
                helper = Watcher(r, "product", 2.0, f"{env_label} again", looks=False)
                helper.start()
                found["value"] = r.all_reduce()
                helper.done()
            helper.done()
            with r.step("abort", case=env_label) as found:
                found["value"] = None if r.lab.dry else abort_by("product")
            with r.step("leave", case=env_label):
                r.leave()
            with r.step("join alone, and all_reduce", case=env_label) as found:
                r.world = 1
                r.join()
                found["value"] = r.all_reduce()

        return run

    for label, env in (("as the product sets it", {}), ("with a short wait for dumps", QUICK_DUMP)):
        ranks = start_ranks(lab, 2, rank(label), **env)
        deadline = time.monotonic() + 15
        while not (lab.folder / "flag-kill").exists() and time.monotonic() < deadline and ranks.all_live():
            time.sleep(0.02)
        ranks.kill(1)
        lab.say(case=label, killed=True)
        lab.say(case=label, codes=ranks.wait(26))
        clean(lab)


@experiment(75, "Two communicators hang on one device (default and a subgroup): which way of aborting returns?",
            "at least one way frees within 1 s; 'groups' may deadlock")  # fmt: skip
def two_comms(lab: Lab) -> None:
    def rank(how: str) -> Callable[[Rank], None]:
        def run(r: Rank) -> None:
            import torch
            import torch.distributed as dist

            r.join()
            other = dist.new_group()
            r.all_reduce()
            dist.all_reduce(r.ones(), group=other)
            r.sync()
            r.meet("ready")
            if r.rank == 1:
                if r.lab.dry:
                    r.await_flag(f"come-{how}", 30)
                    dist.all_reduce(r.ones())
                    dist.all_reduce(r.ones(), group=other)
                while not (r.lab.folder / "flag-freed").exists():
                    if (r.lab.folder / "flag-over").exists():
                        return
                    time.sleep(0.02)
            else:
                watcher = Watcher(r, how, 1.0, how)
                watcher.start()
                try:
                    if r.lab.dry:
                        dist.all_reduce(r.ones())
                        dist.all_reduce(r.ones(), group=other)
                    else:
                        dist.all_reduce(r.ones())
                        with torch.cuda.stream(torch.cuda.Stream()):
                            dist.all_reduce(r.ones(), group=other)
                        torch.cuda.synchronize()
                    got: Any = "returned"
                except Exception as err:
                    got = error_text(err)
                r.say(case=how, freed_seconds_after_abort=watcher.done(), got=got)
                r.flag("freed")
            with r.step("leave", case=how):
                r.leave()
            with r.step("join again", case=how) as found:
                r.join()
                found["value"] = r.all_reduce()

        return run

    for how in ("product", "threads", "torch", "groups"):
        lab.say(case=how, codes=start_ranks(lab, 2, rank(how)).wait(24))
        clean(lab)


@experiment(60, "Joining by device_id (eager): seconds and memory; new_group then splits; is a first hang freed?",
            "the first hang after an eager join is freed like a warm one")  # fmt: skip
def eager(lab: Lab) -> None:
    def rank(r: Rank) -> None:
        import torch.distributed as dist

        if not r.lab.dry:
            r.ones()
        before = r.used_mib()
        with r.step("join by device_id") as found:
            r.join(eager=True)
            found["device_mib"] = [before, r.used_mib()]
        with r.step("new_group of all") as found:
            group = dist.new_group()
            found["device_mib"] = r.used_mib()
        with r.step("new_group of rank 0 alone"):
            dist.new_group([0])
        with r.step("all_reduce over the new group") as found:
            value = r.ones()
            dist.all_reduce(value, group=group)
            found["value"] = float(value[0].item())
        with r.step("leave"):
            r.meet("leave")
            r.leave()
        with r.step("join again"):
            r.join(eager=True)
        hang_once(r, "first collective after an eager join", "item", "product", both=False)

    lab.say(codes=start_ranks(lab, 2, rank).wait(50))


@experiment(45, "Healthy training (1 s of matmul a step): abort on rank 0 alone. What happens to rank 1?",
            "nobody knows: rank 1 hangs or fails; freed by an abort of its own")  # fmt: skip
def abort_healthy(lab: Lab) -> None:
    def rank(r: Rank) -> None:
        import torch
        import torch.distributed as dist

        r.join()
        r.all_reduce()
        r.meet("ready")
        size = 256 if r.lab.dry else 8192
        a = torch.ones(size, size, device=r.device)
        watcher = Watcher(r, "product", 3.0 if r.rank == 0 else 12.0, f"rank {r.rank}")
        if not r.lab.dry:
            watcher.start()
        begun, steps = time.monotonic(), 0
        try:
            while time.monotonic() - begun < (2 if r.lab.dry else 8):
                for _ in range(1 if r.lab.dry else 40):
                    a = (a @ a).clamp(0, 1)
                value = a.sum()
                dist.all_reduce(value)
                float(value)
                steps += 1
            got: Any = "went on"
        except Exception as err:
            got = error_text(err)
        r.say(steps=steps, seconds=round(time.monotonic() - begun, 2), got=got, freed=watcher.done())
        with r.step("leave"):
            r.leave()
        r.meet("again", 20)
        with r.step("join again") as found:
            r.join()
            found["value"] = r.all_reduce()

    lab.say(codes=start_ranks(lab, 2, rank).wait(40))


@experiment(60, "Two ranks call different collectives, and the same with other sizes: hang or error? Freed?",
            "both hang; the recorder shows both calls; abort frees each")  # fmt: skip
def mismatch(lab: Lab) -> None:
    def rank(kind: str) -> Callable[[Rank], None]:
        def run(r: Rank) -> None:
            import torch.distributed as dist

            r.join()
            r.all_reduce()
            r.meet("ready")
            if r.lab.dry:
                return
            watcher = Watcher(r, "product", 2.0, f"{kind}, rank {r.rank}")
            watcher.start()
            try:
                value = r.ones(1 << 20 if kind == "sizes" and r.rank else 1024)
                if kind == "calls" and r.rank:
                    dist.broadcast(value, 0)
                else:
                    dist.all_reduce(value)
                got: Any = float(value[0].item())
            except Exception as err:
                got = error_text(err)
            r.say(case=kind, got=got, freed_seconds_after_abort=watcher.done())

        return run

    for kind in ("calls", "sizes"):
        lab.say(case=kind, codes=start_ranks(lab, 2, rank(kind)).wait(25))
        clean(lab)


@experiment(130, "torch's watchdog at a timeout of 10 s, with the product's environment: the record, the process, abort?",
            "the record should stay until the abort; seen is what happens to it at 10 s and 60 s later")  # fmt: skip
def watchdog(lab: Lab) -> None:
    timeout = 3.0 if lab.dry else 10.0
    last = 6.0 if lab.dry else 88.0

    def rank(label: str, abort_at: float) -> Callable[[Rank], None]:
        def run(r: Rank) -> None:
            import torch.distributed as dist

            r.join(timeout=600 if r.lab.dry else timeout)
            r.all_reduce()
            r.meet(f"{label}-ready")
            if r.rank == 1:
                r.await_flag(f"{label}-over" if not r.lab.dry else f"come-{label}", abort_at + 25)
                if r.lab.dry:
                    dist.all_reduce(r.ones())
                return
            over = threading.Event()

            def look() -> None:
                seen, begun = None, time.monotonic()
                while not over.wait(1.0):
                    now = recorders()
                    shown = {name: {key: value for key, value in found.items() if key != "milliseconds"}
                             for name, found in now.items() if isinstance(found, dict)}  # fmt: skip
                    if shown != seen:
                        seen = shown
                        r.say(case=label, seconds=round(time.monotonic() - begun, 1), recorders=now)

            threading.Thread(target=look, daemon=True).start()
            watcher = Watcher(r, "product", abort_at, label)
            watcher.start()
            begun = time.monotonic()
            try:
                value = r.ones()
                dist.all_reduce(value)
                got: Any = float(value[0].item())
            except Exception as err:
                got = error_text(err)
            over.set()
            r.say(case=label, got=got, seconds=round(time.monotonic() - begun, 1),
                  freed_seconds_after_abort=watcher.done())  # fmt: skip
            with r.step("leave", case=label):
                r.leave()
            r.flag(f"{label}-over")

        return run

    # All at the same time, since they mostly wait.
    wanted = {
        "as the product sets it": (last, {}),
        "with a short wait for dumps": (last / 3, QUICK_DUMP),
        "with TORCH_DISTRIBUTED_DEBUG=DETAIL": (last, {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}),
    }
    running = {}
    for number, (label, (abort_at, env)) in enumerate(wanted.items()):
        part = Lab(lab.name, lab.out, lab.folder / str(number), dry=lab.dry, num_gpus=lab.num_gpus, seconds=lab.left)
        part.folder.mkdir()
        running[label] = start_ranks(part, 2, rank(label, abort_at), **env)
    for label, ranks in running.items():
        lab.say(case=label, codes=ranks.wait(last + 35))


@experiment(60, "The other implementation, if this torch has it (TORCH_DIST_USE_NCCL2=1): class, record, hang, abort.",
            "the class is another one only where it exists; then the same as hang_warm")  # fmt: skip
def other_nccl(lab: Lab) -> None:
    def rank(r: Rank) -> None:
        import torch
        import torch.distributed as dist

        r.join()
        kind = "cpu" if r.lab.dry else "cuda"
        r.say(backend=type(dist.group.WORLD._get_backend(torch.device(kind))).__name__)
        r.all_reduce()
        r.say(recorders=recorders(whole=True))
        if "NCCL2" in type(dist.group.WORLD._get_backend(torch.device(kind))).__name__ or r.lab.dry:
            hang_once(r, "item", "item", "groups", both=False)

    lab.say(codes=start_ranks(lab, 2, rank, TORCH_DIST_USE_NCCL2="1").wait(50))


@experiment(50, "gloo over CUDA tensors, and NCCL beside it: does a timed wait abort anything?",
            "gloo all_reduce 2.0; Work.wait(timeout) of NCCL: raises, and the communicator is gone or not")  # fmt: skip
def mixed_backends(lab: Lab) -> None:
    def rank(r: Rank) -> None:
        import torch
        import torch.distributed as dist

        with r.step("join cpu:gloo,cuda:nccl"):
            r.join(backend="gloo" if r.lab.dry else "cpu:gloo,cuda:nccl")
        with r.step("all_reduce of a device tensor") as found:
            found["value"] = r.all_reduce()
        with r.step("all_reduce of a CPU tensor") as found:
            value = torch.ones(1)
            dist.all_reduce(value)
            found["value"] = float(value)
        with r.step("all_gather_object") as found:
            objects: list[Any] = [None] * r.world
            dist.all_gather_object(objects, {"rank": r.rank})
            found["value"] = objects
        with r.step("sequence number") as found:
            found["value"] = dist.group.WORLD._get_sequence_number_for_group()
        gloo = dist.new_group(backend="gloo")
        with r.step("gloo all_reduce of a device tensor") as found:
            value = r.ones()
            dist.all_reduce(value, group=gloo)
            found["value"] = float(value[0].item())
        r.meet("before")
        if r.rank == 0:
            with r.step("NCCL wait(0.5 s) without rank 1") as found:
                value = r.ones()
                work = dist.all_reduce(value, async_op=True)
                try:
                    found["value"] = work.wait(datetime.timedelta(seconds=0.5))
                finally:
                    found["completed"] = work.is_completed()
                    found["recorders"] = recorders()
            r.flag("waited")
        else:
            r.await_flag("waited", 15)
        watcher = Watcher(r, "product", 4.0, f"rank {r.rank}", looks=False)
        watcher.start()
        try:
            got: Any = r.all_reduce() if r.rank else float(value[0].item())
        except Exception as err:
            got = error_text(err)
        r.say(then=got, aborted=watcher.done())

    lab.say(codes=start_ranks(lab, 2, rank).wait(45))


@experiment(90, "Raw records: of a batch of sends, a send, a collective at torch's time limit, aborted, and of a peer that died.",
            "parts of a batch are never retired, with the batch's number; what torch gave up is retired, and not completed")  # fmt: skip
def stale(lab: Lab) -> None:
    def raw(r: Rank, what: str) -> None:
        from torch._C import _distributed_c10d as bindings

        for name in DUMPS:
            dump = getattr(bindings, name, None)
            if dump is not None:
                data = {active: json.loads(dump(True, active)) for active in (True, False)}
                r.say(what=what, dump=name, active=data[True].get("entries"), all=data[False].get("entries", [])[-8:],
                      pg_status=data[False].get("pg_status"))  # fmt: skip

    def batch(r: Rank) -> list[Any]:
        import torch.distributed as dist

        ops = [dist.P2POp(dist.isend, r.ones(), 1 - r.rank), dist.P2POp(dist.irecv, r.ones(), 1 - r.rank)]
        return dist.batch_isend_irecv(ops)

    def hangs(r: Rank, what: str, begin: Callable[[], Any], after: float) -> None:
        """Begin it on rank 0 alone, look at it after a while, and abort."""
        if r.rank == 0:
            watcher = Watcher(r, "threads", after + 1.5, what, looks=False)
            timer = threading.Timer(after, lambda: raw(r, what))
            timer.start()
            watcher.start()
            with r.step(what):
                begin()
                r.sync()
            watcher.done()
            raw(r, f"{what}, after the abort")
        r.meet(f"{what}-over", 40)

    def rank(r: Rank) -> None:
        import torch.distributed as dist

        r.join(timeout=4.0)
        r.all_reduce()
        if r.lab.dry:
            return
        for work in batch(r):
            work.wait()
        dist.send(r.ones(), 1) if r.rank == 0 else dist.recv(r.ones(), 0)
        r.all_reduce()
        r.sync()
        time.sleep(0.5)
        raw(r, "a batch, a send and an all_reduce, all completed")
        r.meet("completed")
        hangs(r, "a collective at the time limit", lambda: dist.all_reduce(r.ones()), 12.0)
        r.leave()
        r.meet("left")
        r.join(eager=True)
        r.all_reduce()
        hangs(r, "a batch", lambda: batch(r), 1.0)
        r.leave()
        r.meet("left again")
        r.join(eager=True)
        r.all_reduce()
        r.meet("joined")
        if r.rank == 1:
            time.sleep(1.0)
            os._exit(9)
        with r.step("barrier, the other rank dies"):
            dist.barrier()
        r.say(ended=True)
        raw(r, "a barrier whose peer died")
        time.sleep(1.0)
        raw(r, "a second later")
        with r.step("all_reduce after it") as found:
            found["value"] = r.all_reduce()

    lab.say(codes=start_ranks(lab, 2, rank, **QUICK_DUMP).wait(85))


RAS_PORT = 28777


@experiment(60, "NCCL's RAS at an address of the group's own, before and while a rank hangs: what does it tell, and to whom?",
            "answers whole, in milliseconds; they name the rank that is behind")  # fmt: skip
def ras(lab: Lab) -> None:
    def rank(r: Rank) -> None:
        import torch.distributed as dist

        r.join()
        r.all_reduce()
        pair = dist.new_group([0, 1], group_desc="a pair")
        dist.all_reduce(r.ones(), group=pair)
        r.sync()
        r.meet("ready")
        r.await_flag("asked", 20)
        if r.rank == 0 and not r.lab.dry:
            watcher = Watcher(r, "threads", 16.0, "ras", looks=False)
            watcher.start()
            value = r.ones()
            dist.all_reduce(value, group=pair)
            r.flag("hangs")
            with contextlib.suppress(Exception):
                value[0].item()
            watcher.done()
        r.flag("hangs")
        r.await_flag("over", 20)

    ranks = start_ranks(lab, 2, rank, NCCL_RAS_ADDR=f"localhost:{RAS_PORT}")
    _await(lab, ranks, "flag-ready.0", "flag-ready.1")
    _ask_ras(lab, "healthy")
    (lab.folder / "flag-asked").touch()
    _await(lab, ranks, "flag-hangs")
    time.sleep(0.0 if lab.dry else 2.0)
    with contextlib.suppress(OSError):
        lines = [
            line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
        ]
        ports = {f"{RAS_PORT:04X}", "6D7C"}
        lab.say(listening=[[line[1], line[7], line[9]] for line in lines if line[3] == "0A" and line[1][-4:] in ports])
    _ask_ras(lab, "hangs")
    (lab.folder / "flag-over").touch()
    lab.say(codes=ranks.wait(30))


def _await(lab: Lab, ranks: Ranks, *flags: str) -> None:
    deadline = time.monotonic() + 20
    while not all((lab.folder / flag).exists() for flag in flags) and time.monotonic() < deadline and ranks.all_live():
        time.sleep(0.05)


def _ask_ras(lab: Lab, case: str) -> None:
    text, of_json = ["CLIENT PROTOCOL 2", "TIMEOUT 2"], ["CLIENT PROTOCOL 2", "SET FORMAT json", "TIMEOUT 2"]
    for lines in ([*text, "VERBOSE STATUS"], [*of_json, "STATUS"], [*of_json, "VERBOSE STATUS"]):
        with lab.step("ask", case=case) as found:
            found["lines"] = lines
            found["answer"] = "not asked" if lab.dry else _asked(lines)


def _asked(lines: list[str]) -> str:
    with socket.create_connection(("localhost", RAS_PORT), timeout=3) as sock:
        sock.settimeout(6)
        data = b""
        for line in lines:
            sock.sendall(line.encode() + b"\n")
            if "STATUS" not in line:
                data += sock.recv(1000)
        with contextlib.suppress(TimeoutError):
            while chunk := sock.recv(65536):
                data += chunk
        return data.decode("utf-8", "replace")


# Calls of the main thread that may wait inside the driver for a kernel that never ends.
DRIVER_CALLS: dict[str, Callable[[Any, Any, list[Any]], Any]] = {
    "a full queue": lambda torch, value, held: [value.add_(1) for _ in range(5000)],
    "memory is freed": lambda torch, value, held: (held.clear(), torch.cuda.empty_cache()),
    "a first kernel": lambda torch, value, held: torch.erfinv(torch.full((8,), 0.5, device=value.device)),
    "memory is pinned": lambda torch, value, held: torch.ones(1 << 22).pin_memory(),
}


@experiment(60, "The main thread waits in the driver behind a hung collective: which calls of another thread wait, too?",
            "all answer in milliseconds; a call that begins and has no seconds blocks the whole process by the GIL")  # fmt: skip
def driver_locks(lab: Lab) -> None:
    for case, call in DRIVER_CALLS.items():
        if lab.left < 12:
            return
        clean(lab)

        def rank(r: Rank, case: str = case, call: Callable[..., Any] = call) -> None:
            import torch
            import torch.distributed as dist

            r.join(eager=True)
            r.all_reduce()
            held = [r.ones(1 << 26)]
            r.sync()
            r.meet("ready")
            if r.rank == 1:
                r.await_flag("over", 12)
                os._exit(0)
            event = None if r.lab.dry else torch.cuda.Event()
            if event is not None:
                event.record()
            threading.Thread(target=_try_calls, args=(r, case, event), daemon=True).start()
            if not r.lab.dry:
                value = r.ones()
                dist.all_reduce(value)
                call(torch, value, held)
                r.say(case=case, main="the call itself did not wait")
                value[0].item()
            time.sleep(20)

        lab.say(case=case, codes=start_ranks(lab, 2, rank).wait(10))


def _try_calls(r: Rank, case: str, event: Any) -> None:
    """Make the calls with which a rank is looked at, one by one, while its main thread waits."""
    import torch
    from torch._C import _distributed_c10d as bindings

    time.sleep(2.0)
    if event is not None:
        found: list[int] = []
        query = ctypes.CDLL("libcuda.so.1").cuEventQuery  # ctypes releases the GIL
        asking = threading.Thread(target=lambda: found.append(query(ctypes.c_void_p(event.cuda_event))), daemon=True)
        begun = time.monotonic()
        asking.start()
        asking.join(1.0)
        r.say(case=case, call="cuEventQuery without the GIL", blocks=asking.is_alive(), code=found,
              seconds=round(time.monotonic() - begun, 4))  # fmt: skip
    dump = getattr(bindings, DUMPS[0], None) or getattr(bindings, DUMPS[-1])
    calls: dict[str, Callable[[], Any]] = {
        "sequence number": torch.distributed.group.WORLD._get_sequence_number_for_group,
        "recorder without entries": lambda: dump(False, False),
        **({} if r.lab.dry else {"mem_get_info": lambda: torch.cuda.mem_get_info(r.device)}),
        "memory_allocated": lambda: torch.cuda.memory_allocated(r.device) if event is not None else None,
        "recorder with entries": lambda: dump(True, True),
    }
    for name, ask in calls.items():
        r.say(case=case, call=name, begins=True)
        begun = time.monotonic()
        ask()
        r.say(case=case, call=name, seconds=round(time.monotonic() - begun, 4))
    r.flag("over")
    os._exit(0)
