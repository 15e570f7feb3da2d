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
