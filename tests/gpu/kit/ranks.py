"""Ranks of an experiment: processes that join a process group, on one device too."""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import faulthandler
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from kit.lab import Lab, error_text

# What jupyter_dist sets on every rank (protocol/accelerators.py, agent/processes/starting/environment.py).
PRODUCT = {
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0",
    "TORCH_NCCL_ENABLE_MONITORING": "0",
    "TORCH_NCCL_RETHROW_CUDA_ERRORS": "0",
    "TORCH_NCCL_PROPAGATE_ERROR": "0",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
    "TORCH_FR_BUFFER_SIZE": "256",
    "NCCL_SOCKET_IFNAME": "lo",
    "GLOO_SOCKET_IFNAME": "lo",
    "OMP_NUM_THREADS": "1",
}


MULTI_RANK = {"NCCL_MULTI_RANK_GPU_ENABLE": "1"}  # NCCL 2.30 asks for it, 2.28 does not know it


QUICK_DUMP = {"TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "1"}


FREE_SECONDS = 8.0  # how long an abort may take to free the main thread


def import_torch() -> None:
    """Import it once, without using a device: experiments are forked from here."""
    import torch
    import torch.distributed  # noqa: F401


class Rank:
    """One rank of an experiment, in a process of its own."""

    def __init__(self, lab: Lab, rank: int, world: int) -> None:
        self.lab, self.rank, self.world = lab, rank, world
        self.stores = 0

    def say(self, **fields: Any) -> None:
        self.lab.say(rank=self.rank, **fields)

    @contextlib.contextmanager
    def step(self, what: str, **fields: Any):
        with self.lab.step(what, rank=self.rank, **fields) as found:
            yield found

    @property
    def device(self) -> str:
        return "cpu" if self.lab.dry else f"cuda:{self.rank % max(1, self.lab.num_gpus)}"

    def flag(self, name: str) -> None:
        """Tell the other ranks something, without torch."""
        (self.lab.folder / f"flag-{name}").touch()

    def await_flag(self, name: str, seconds: float = 60.0) -> bool:
        deadline = time.monotonic() + seconds
        while not (self.lab.folder / f"flag-{name}").exists():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def meet(self, name: str, seconds: float = 60.0) -> bool:
        """Wait for all ranks, without torch."""
        self.flag(f"{name}.{self.rank}")
        return all(self.await_flag(f"{name}.{other}", seconds) for other in range(self.world))

    def join(self, *, eager: bool = False, timeout: float = 600.0, backend: str | None = None) -> None:
        """Create the process group over a new store."""
        import torch
        import torch.distributed as dist

        dist.set_debug_level_from_env()
        store = dist.FileStore(str(self.lab.folder / f"store-{self.stores}"), self.world)
        self.stores += 1
        options: dict[str, Any] = {"timeout": datetime.timedelta(seconds=timeout)}
        if not self.lab.dry:
            torch.cuda.set_device(self.device)
            if eager:
                options["device_id"] = torch.device(self.device)
        backend = backend or ("gloo" if self.lab.dry else "nccl")
        dist.init_process_group(backend, store=store, rank=self.rank, world_size=self.world, **options)

    def leave(self) -> None:
        """Drop all process groups as jupyter_dist does after an abort."""
        import torch.distributed as dist
        from torch.distributed import distributed_c10d as c10d

        if not dist.is_initialized():
            return
        with contextlib.suppress(RuntimeError, ValueError):
            if self.lab.dry:
                dist.destroy_process_group()
            else:
                c10d._abort_process_group()
        if hasattr(c10d, "_world"):
            c10d._world.group_count = 0

    def ones(self, number: int = 4):
        import torch

        return torch.ones(number, device=self.device)

    def sync(self) -> None:
        import torch

        if not self.lab.dry:
            torch.cuda.synchronize()

    def all_reduce(self, number: int = 4) -> float:
        """Reduce ones, and return what arrived."""
        import torch.distributed as dist

        value = self.ones(number)
        dist.all_reduce(value)
        return float(value[0].item())

    def used_mib(self) -> list[int | None] | None:
        """Memory used on the device, by all and by this process."""
        import torch

        if self.lab.dry:
            return None
        free, total = torch.cuda.mem_get_info(self.device)
        return [(total - free) >> 20, own_mib()]


class Ranks:
    """The ranks of an experiment, from outside."""

    def __init__(self, lab: Lab, pids: list[int]) -> None:
        self._lab = lab
        self.pids = pids
        self.codes: dict[int, int] = {}

    def kill(self, rank: int) -> None:
        if rank not in self.codes:
            os.kill(self.pids[rank], signal.SIGKILL)

    def all_live(self) -> bool:
        self._reap()
        return not self.codes

    def wait(self, seconds: float) -> dict[int, int]:
        """Wait for all, kill those that are late; return exit codes by rank (-9 is killed)."""
        deadline = time.monotonic() + min(seconds, max(1.0, self._lab.left - 2.0))
        while len(self.codes) < len(self.pids) and time.monotonic() < deadline:
            self._reap()
            time.sleep(0.02)
        for rank, pid in enumerate(self.pids):
            if rank not in self.codes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGUSR1)  # faulthandler prints its stacks into the log
                    time.sleep(0.3)
                    os.kill(pid, signal.SIGKILL)
                self._lab.say(late=rank, printed=self._printed(rank))
                self.codes[rank] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return dict(sorted(self.codes.items()))

    def _printed(self, rank: int) -> str:
        path = self._lab.folder / f"stacks-{self.pids[rank]}"
        return path.read_text()[-2500:] if path.exists() else ""

    def _reap(self) -> None:
        for rank, pid in enumerate(self.pids):
            if rank not in self.codes and (status := os.waitpid(pid, os.WNOHANG))[0]:
                self.codes[rank] = os.waitstatus_to_exitcode(status[1])


def own_mib() -> int | None:
    """What NVML says that this process holds."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        found = [process for handle in handles for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
        return sum((process.usedGpuMemory or 0) >> 20 for process in found if process.pid == os.getpid())
    except Exception:  # no driver, or one that does not tell
        return None


def start_ranks(lab: Lab, world: int, function: Callable[[Rank], None], *, hosts: bool = True, **env: str) -> Ranks:
    """Fork ranks with the product's environment; `function` gets its Rank. Exit code 0, or 1 after an error."""
    own = os.getpid()
    pids = []
    for rank in range(world):
        pid = os.fork()
        if pid:
            pids.append(pid)
            continue
        code = 1
        try:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
            faulthandler.register(signal.SIGUSR1, (lab.folder / f"stacks-{os.getpid()}").open("w"))
            # What NCCL needs for ranks on the same device; nothing where each has its own.
            shares = hosts and world > max(1, lab.num_gpus)
            hostid = {"NCCL_HOSTID": f"kit-{own}-{rank}", **MULTI_RANK} if shares else {}
            os.environ.update({**PRODUCT, **hostid, **env})
            function(Rank(lab, rank, world))
            code = 0
        except BaseException as err:  # the outermost level of the process
            traceback.print_exc()
            lab.say(rank=rank, failed=error_text(err))
        finally:
            sys.stderr.flush()
            os._exit(code)
    return Ranks(lab, pids)


def clean(lab: Lab) -> None:
    for path in lab.folder.iterdir():
        path.unlink()
