"""What a side thread of a rank sees of a main thread that waits, and the ways to abort."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from kit.lab import error_text
from kit.ranks import FREE_SECONDS, Rank

DUMPS = ("_dump_nccl_trace_json", "_dump_fr_trace_json")


def recorders(*, whole: bool = False) -> dict[str, Any]:
    """Return what each flight recorder holds."""
    from torch._C import _distributed_c10d as bindings

    found: dict[str, Any] = {}
    for name in DUMPS:
        dump = getattr(bindings, name, None)
        if dump is None:
            found[name] = "missing"
            continue
        try:
            begun = time.monotonic()
            data = json.loads(dump(True, False))
            milliseconds = (time.monotonic() - begun) * 1000
            active = json.loads(dump(True, True))
        except Exception as err:
            found[name] = error_text(err)
            continue
        entries = data.get("entries", [])
        found[name] = {
            "entries": len(entries),
            "not_retired": [brief(entry) for entry in active.get("entries", []) if not entry.get("retired")][-4:],
            "pg_status": data.get("pg_status"),
            "milliseconds": round(milliseconds, 2),
        }
        if whole:
            found[name] |= {"keys": sorted(data), "pg_config": data.get("pg_config"), "last": entries[-1:],
                            "nccl_comm_state": list((data.get("nccl_comm_state") or {}).items())[:1]}  # fmt: skip
    return found


def brief(entry: dict[str, Any]) -> list[Any]:
    keys = ("profiling_name", "process_group", "pg_id", "collective_seq_id", "state", "retired")
    return [entry.get(key) for key in keys]


class Watcher(threading.Thread):
    """The side thread of a rank whose main thread waits: looks, aborts, and ends the process if nothing frees it."""

    def __init__(self, rank: Rank, how: str, after: float = 1.5, label: str = "", *, looks: bool = True) -> None:
        super().__init__(daemon=True)
        self.rank, self.how, self.after, self.label, self.looks = rank, how, after, label, looks
        self.over = threading.Event()
        self.aborted_at: float | None = None

    def run(self) -> None:
        if self.over.wait(self.after):
            return
        if self.looks:
            self.rank.say(case=self.label, while_it_waits=self.look())
        self.aborted_at = time.monotonic()
        returned = threading.Event()

        def abort() -> None:
            try:
                self.rank.say(case=self.label, abort=self.how, returned=abort_by(self.how))
            except Exception as err:
                self.rank.say(case=self.label, abort=self.how, error=error_text(err))
            returned.set()

        threading.Thread(target=abort, daemon=True).start()
        if self.rank.lab.dry and not self.over.wait(0.3):  # nothing in torch frees gloo: the other rank comes
            self.rank.flag(f"come-{self.label}")
        if self.over.wait(FREE_SECONDS):
            if not returned.wait(FREE_SECONDS):
                self.rank.say(case=self.label, abort=self.how, returned=False, after_seconds=FREE_SECONDS)
            return
        self.rank.say(case=self.label, freed=False, abort_returned=returned.is_set(), **main_thread())
        self.rank.flag("over")
        self.rank.flag(f"{self.label}-over")
        time.sleep(0.2)
        os._exit(7)

    def look(self) -> dict[str, Any]:
        import torch

        found: dict[str, Any] = {"recorders": recorders(), **main_thread()}
        if not self.rank.lab.dry:
            for what, ask in {
                "mem_get_info": lambda: torch.cuda.mem_get_info(self.rank.device),
                "memory_allocated": lambda: torch.cuda.memory_allocated(self.rank.device),
                "nested": lambda: bool(torch.cuda.memory_stats_as_nested_dict(self.rank.device)),
            }.items():
                begun = time.monotonic()
                try:
                    ask()
                    found[f"{what}_ms"] = round((time.monotonic() - begun) * 1000, 2)
                except Exception as err:
                    found[f"{what}_ms"] = error_text(err)
        return found

    def done(self) -> float | None:
        """Main thread: it is free. Return the seconds since the abort."""
        self.over.set()
        return None if self.aborted_at is None else round(time.monotonic() - self.aborted_at, 3)


def main_thread() -> dict[str, Any]:
    """What /proc and Python tell of the main thread: 0.5 s."""
    ident = threading.main_thread().ident
    path = Path(f"/proc/self/task/{os.getpid()}")

    def sample() -> tuple[str, int, tuple[Any, int]]:
        fields = (path / "stat").read_text().rpartition(")")[2].split()
        frame = sys._current_frames().get(ident)
        code = (frame.f_code.co_name, frame.f_lasti) if frame is not None else (None, 0)
        return fields[0], int(fields[11]) + int(fields[12]), code

    first = sample()
    states = []
    for _ in range(10):
        time.sleep(0.05)
        states.append(sample()[0])
    last = sample()
    try:
        syscall = (path / "syscall").read_text().split()[0]
    except OSError as err:
        syscall = str(err)
    return {"main": {"states": "".join(states), "cpu_ticks_of_50": last[1] - first[1], "syscall": syscall,
                     "bytecode_moved": first[2] != last[2], "in": last[2][0]}}  # fmt: skip


def abort_by(how: str) -> Any:
    """Abort communicators in one of the ways that torch has."""
    import torch
    from torch.distributed import distributed_c10d as c10d

    begun = time.monotonic()
    groups = sorted(c10d._world.pg_names, key=c10d._world.pg_names.__getitem__, reverse=True)
    times: list[Any] = []
    if how == "product":  # torch_compat.abort_communicators
        backend = groups[-1]._get_backend(torch.device("cuda")) if torch.cuda.is_available() else None
        if backend is not None and hasattr(backend, "_group_start"):
            backend._group_start()
        try:
            for group in groups:
                group.abort()
                times.append(round(time.monotonic() - begun, 3))
        finally:
            if backend is not None and hasattr(backend, "_group_end"):
                backend._group_end()
    elif how == "groups":
        for group in groups:
            group.abort()
            times.append(round(time.monotonic() - begun, 3))
    elif how == "threads":
        threads = [threading.Thread(target=group.abort, daemon=True) for group in groups]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(FREE_SECONDS)
        times.append([thread.is_alive() for thread in threads])
    elif how == "torch":
        c10d._abort_process_group()
    elif how == "backend":
        for group in groups:
            group._get_backend(torch.device("cuda")).abort()
    elif how == "nothing":
        return None
    elif how.startswith("store:"):  # unhang.break_store: every access to a FileStore fails at once
        path = how.removeprefix("store:")
        os.unlink(path)
        os.symlink(path, path)
    return {"seconds": round(time.monotonic() - begun, 3), "each": times}
