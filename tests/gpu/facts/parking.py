"""CUDA checkpoint: a process that gives its device memory to the host, and takes it back."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kit.lab import Lab, device_state, error_text, experiment
from kit.ranks import Rank, clean, start_ranks

from .devices import reap


def _cuda(function: str, *arguments: Any) -> str:
    """Call the driver, and return the name of what it says."""
    library = ctypes.CDLL("libcuda.so.1")
    code = getattr(library, function)(*arguments)
    if code == 0:
        return "ok"
    text = ctypes.c_char_p()
    library.cuGetErrorName(code, ctypes.byref(text))
    return f"{code} {text.value.decode() if text.value else '?'}"


@experiment(120, "CUDA checkpoint: can a process with 20 GB on the device be parked and woken, with NCCL used before?",
            "the device is empty while parked, the checksum is the same after it; seconds")  # fmt: skip
def checkpoint(lab: Lab) -> None:
    size = (1 << 20) if lab.dry else 20 << 30

    def rank(kind: str) -> Callable[[Rank], None]:
        def run(r: Rank) -> None:
            import torch
            import torch.distributed as dist

            if not r.lab.dry:
                torch.cuda.set_device(r.device)
            if kind != "plain":
                r.join()
                r.all_reduce()
                r.sync()
                if kind == "NCCL used and destroyed":
                    dist.destroy_process_group()
            x = torch.arange(size // 8, dtype=torch.int64, device=r.device)
            before = int(x.sum().item())
            r.flag("loaded")
            r.await_flag("woken", 80)
            with r.step("checksum", case=kind) as found:
                found["same"] = int(x.sum().item()) == before
            if kind == "NCCL alive":
                with r.step("all_reduce after it", case=kind) as found:
                    found["value"] = r.all_reduce()
            with r.step("new allocation", case=kind) as found:
                found["value"] = float(r.ones().sum().item())

        return run

    for kind in ("plain", "NCCL used and destroyed", "NCCL alive"):
        ranks = start_ranks(lab, 1, rank(kind))
        pid = ranks.pids[0]
        deadline = time.monotonic() + 25
        while not (lab.folder / "flag-loaded").exists() and time.monotonic() < deadline and ranks.all_live():
            time.sleep(0.02)
        lab.say(case=kind, step="loaded", smi=device_state(), resident_mib=_resident_mib(pid))
        if not lab.dry and ranks.all_live():
            # Parked by a process of its own: this one must stay without CUDA, and a call that hangs must not hold it.
            parker = os.fork()
            if parker == 0:
                _park(lab, pid, kind)
                os._exit(0)
            reap(lab, parker, 45, kind)
        (lab.folder / "flag-woken").touch()
        lab.say(case=kind, codes=ranks.wait(15))
        clean(lab)


# What is told apart for two ranks on one device: who computes what, variables of NCCL, whether there was a communicator
# before, when it was aborted, and who is parked in which order.
_TWO: dict[str, dict[str, Any]] = {
    "long kernels without NCCL": {"works": "sleep"},
    "aborted before, rank 0 alone parked": {"parked": (0,)},
    "no cuMem": {"env": {"NCCL_CUMEM_ENABLE": "0", "NCCL_CUMEM_HOST_ENABLE": "0"}},
    "one after the other, at last a second without work": {"order": "each", "rests": 1.0},
    "aborted after": {"aborts": "after"},
    "aborted before": {},
    "no communicator before": {"joins": False},
}
_MEETING_SECONDS = 12.0


@experiment(150, "CUDA checkpoint of two ranks on one device: which new communicator works after it?",
            "all_reduce is 2.0 in each case, twice")  # fmt: skip
def checkpoint_two(lab: Lab) -> None:
    for kind, case in _TWO.items():
        _checkpoint_two(lab, kind, **case)


def _checkpoint_two(
    lab: Lab,
    kind: str,
    *,
    works: str = "all_reduce",
    joins: bool = True,
    aborts: str = "before",
    order: str = "phases",
    parked: tuple[int, ...] = (0, 1),
    rests: float = 0.0,
    env: dict[str, str] | None = None,
) -> None:
    def run(r: Rank) -> None:
        import torch

        if not r.lab.dry:
            torch.cuda.set_device(r.device)
        x = torch.arange(1 << 20, dtype=torch.int64, device=r.device)
        before = int(x.sum().item())
        for number in range(2):
            if works == "all_reduce" and joins:
                r.join()
                r.all_reduce()
                r.sync()
                if aborts == "before":
                    r.leave()
            if not (r.meet(f"loaded{number}", _MEETING_SECONDS) and r.await_flag(f"woken{number}", 30)):
                return
            time.sleep(rests)
            if aborts == "after":
                r.leave()
            with r.step("checksum", case=kind, number=number) as found:
                found["same"] = int(x.sum().item()) == before
            with r.step(f"{works} after it", case=kind, number=number) as found:
                if works == "sleep":  # both at a time, for long enough that the device takes turns
                    for _ in range(20):
                        if not r.lab.dry:
                            torch.cuda._sleep(200_000_000)
                    r.sync()
                    found["value"] = 2.0
                else:
                    r.join()
                    found["value"] = r.all_reduce()
                    r.leave()
            if "error" in found:
                return

    ranks = start_ranks(lab, 2, run, **(env or {}))
    for number in range(2):
        flags = [lab.folder / f"flag-loaded{number}.{rank}" for rank in range(2)]
        deadline = time.monotonic() + _MEETING_SECONDS
        while not all(flag.exists() for flag in flags) and time.monotonic() < deadline and ranks.all_live():
            time.sleep(0.02)
        if not lab.dry and ranks.all_live():
            parker = os.fork()
            if parker == 0:
                _park_all(lab, [ranks.pids[rank] for rank in parked], order, kind)
                os._exit(0)
            reap(lab, parker, 25, kind)
        (lab.folder / f"flag-woken{number}").touch()
    lab.say(case=kind, codes=ranks.wait(10))
    clean(lab)


def _park_all(lab: Lab, pids: list[int], order: str, kind: str) -> None:
    _cuda("cuInit", 0)
    down, up = ("Lock", "Checkpoint"), ("Restore", "Unlock")
    if order == "each":
        for half in (down, up):
            for pid in pids:
                lab.say(case=kind, pid=pid, got=[_step_all([pid], name) for name in half])
        return
    lab.say(case=kind, got=[_step_all(pids, name) for name in (*down, *up)])


def _step_all(pids: list[int], name: str) -> list[str]:
    """Take one step with all processes, in threads: with one lock for all, some steps wait for each other."""
    from concurrent.futures import ThreadPoolExecutor

    def one(pid: int) -> str:
        arguments = (ctypes.c_uint * 16)(10_000 if name == "Lock" else 0)
        return f"{name} {_cuda(f'cuCheckpointProcess{name}', pid, arguments)}"

    with ThreadPoolExecutor(len(pids)) as pool:
        return list(pool.map(one, pids))


def _park(lab: Lab, pid: int, kind: str) -> None:
    lab.say(case=kind, step="cuInit", got=_cuda("cuInit", 0))
    lock = (ctypes.c_uint * 16)(10_000)  # CUcheckpointLockArgs: timeoutMs and what is reserved, 64 bytes
    for what, function, arguments in (
        ("lock", "cuCheckpointProcessLock", lock),
        ("checkpoint", "cuCheckpointProcessCheckpoint", None),
        ("restore", "cuCheckpointProcessRestore", None),
        ("unlock", "cuCheckpointProcessUnlock", None),
    ):
        state = ctypes.c_int(-1)
        begun = time.monotonic()
        try:
            got = _cuda(function, pid, arguments)
            seconds = round(time.monotonic() - begun, 3)
            _cuda("cuCheckpointProcessGetState", pid, ctypes.byref(state))
        except (AttributeError, OSError) as err:
            lab.say(case=kind, step=what, error=error_text(err))
            return
        lab.say(case=kind, step=what, got=got, seconds=seconds, state=state.value, smi=device_state(),
                resident_mib=_resident_mib(pid))  # fmt: skip


def _resident_mib(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    except (OSError, ValueError):
        return None
