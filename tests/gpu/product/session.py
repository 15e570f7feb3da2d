"""A client with its server, and what is asked of groups."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kit.lab import Lab, device_state, error_text

FREED_SECONDS = 8.0  # after an interrupt; then it is interrupted again, and then killed


AGAIN_SECONDS = 4.0


VERDICT_SECONDS = 10.0


# What a rank prints of itself.
SHOW_ENVIRONMENT = """
import os
import signal
print({name: value for name, value in sorted(os.environ.items())
       if name.startswith(("CUDA", "NCCL", "TORCH", "PYTORCH", "OMP", "GLOO")) or name.endswith("RANK")})
print(device, dist.get_backend(), torch.__version__, os.getpid())
"""


SYNC = "torch.cuda.synchronize() if torch.cuda.is_available() else None"


WARM = "t = torch.ones(1, device=device); dist.all_reduce(t); kept = 40 + rank; print(t.item())"


class Session:
    """A client with its server, and what is asked of groups."""

    def __init__(self, lab: Lab) -> None:
        for name in ("runtime", "config", "data", "home", "work", "ipython"):
            (lab.folder / name).mkdir(mode=0o700, exist_ok=True)
        os.environ.update(
            JUPYTER_RUNTIME_DIR=str(lab.folder / "runtime"), JUPYTER_CONFIG_DIR=str(lab.folder / "config"),
            JUPYTER_DATA_DIR=str(lab.folder / "data"), HOME=str(lab.folder / "home"), PYTHONUNBUFFERED="1",
            IPYTHONDIR=str(lab.folder / "ipython"), JUPYTER_NO_CONFIG="1",
        )  # fmt: skip
        os.chdir(lab.folder / "work")
        from jupyter_dist.client import Client

        self.lab = lab
        with lab.step("connect"):
            self.client = Client.connect()

    def start(self, ranks: int, name: str | None = None, **fields: Any):
        """Start a group, and say how long it took and what it tells."""
        wanted: dict[str, Any] = {"accelerator": "cpu", "num_ranks": ranks}
        if not self.lab.dry:
            gpus = max(1, self.lab.num_gpus)
            wanted = {"accelerator": "cuda", "backend": "nccl", "devices": [rank % gpus for rank in range(ranks)]}
        wanted |= fields
        group = None
        with self.lab.step("start", ranks=ranks, wanted=wanted) as found:
            group = self.client.start(name, **wanted)
            model = group.model
            found |= {key: model.get(key) for key in ("state", "backend", "devices", "ready_seconds", "note", "error")}
            found["pids"] = [rank["pid"] for rank in model["ranks"]]
        if group is None:
            raise RuntimeError("the group did not start")
        return group

    def run(self, group, code: str, ranks: str = "all", seconds: float = 60.0, what: str | None = None):
        """Run a cell and say what came of it; interrupts and kills what does not end."""
        result = None
        with self.lab.step(what or code.strip().splitlines()[-1][:90], on=ranks) as found:
            execution = group.submit(code, ranks)
            result = self.ended(group, execution, seconds)
            found.update(shown(result))
            if result is not None and result.state == "lost":
                found["exits"] = [one["exit"] for one in group.status().model["ranks"] if one["exit"]]
        return result

    def ended(self, group, execution, seconds: float, *, may_interrupt: bool = True):
        """Wait for a cell; one that does not end is interrupted, then its ranks are killed and replaced."""
        with contextlib.suppress(TimeoutError):
            return execution.result(seconds)
        if may_interrupt:
            self.lab.say(late=execution.id, verdict=execution.peek().execution.get("verdict"), ranks=messages(group))
            self.lab.say(interrupted=group.interrupt().model)
            with contextlib.suppress(TimeoutError):
                return execution.result(FREED_SECONDS)
        self.lab.say(still_late=execution.id, ranks=messages(group), stacks=stacks(group))
        for rank in [rank for rank, found in execution.peek().items() if found.status == "running"]:
            group.kill(rank)
        with self.lab.step("replace what was killed"):
            execution.result(10)
            group.replace()
        return execution.peek()

    def hang(self, group, code: str, ranks: str, label: str, *, after: float = 0.0) -> bool:
        """Run a cell that cannot end, wait for its verdict, interrupt, and say how it ended; return whether it was freed."""
        lab = self.lab
        execution = group.submit(code, ranks)
        begun = time.monotonic()
        verdict = None
        while time.monotonic() - begun < max(VERDICT_SECONDS, after) and not execution.done():
            verdict = execution.peek().execution.get("verdict")
            if verdict and time.monotonic() - begun >= after:
                break
            time.sleep(0.2)
        lab.say(case=label, verdict=verdict and {key: verdict.get(key) for key in ("kind", "reason", "message")},
                verdict_seconds=round(time.monotonic() - begun, 1), ranks=messages(group), stacks=stacks(group))  # fmt: skip
        if verdict:  # with what NCCL's RAS reports, where it is there
            lab.say(case=label, witnesses=group.verdicts().model["verdicts"][-1]["witnesses"])
        sample_begun = time.monotonic()
        with lab.step("a memory sample while it hangs", case=label) as found:
            found["sample"] = group.memory().model["ranks"]
            found["answered_after"] = round(time.monotonic() - sample_begun, 2)
        asked = time.monotonic()
        group.interrupt()
        freed = False
        for attempt in (1, 2):
            try:
                result = execution.result(FREED_SECONDS if attempt == 1 else AGAIN_SECONDS)
                freed = True
                lab.say(case=label, freed_after=round(time.monotonic() - asked, 2), attempt=attempt, **shown(result))
                break
            except TimeoutError:
                lab.say(case=label, freed=False, attempt=attempt, ranks=messages(group), log=log_tail(group, 0))
                lab.say(case=label, attempt=attempt, stacks=[_stacks_of(group, rank) for rank in group.status().ranks])
                if attempt == 1:
                    group.interrupt()
        if not freed:
            self.ended(group, execution, 0.1, may_interrupt=False)
        again = time.monotonic()
        self.run(
            group,
            "t = torch.ones(1, device=device); dist.all_reduce(t); print(t.item())",
            what=f"all_reduce after {label}",
        )
        lab.say(case=label, usable_after=round(time.monotonic() - again, 2), group=group.status().state,
                process_groups=[rank.process_group for rank in group.status().ranks], note=group.model["note"])  # fmt: skip
        return freed

    def end(self, group) -> None:
        """Shut the group down, and say what is left on the device."""
        with self.lab.step("shutdown") as found:
            found["killed"] = group.shutdown()
        time.sleep(0.0 if self.lab.dry else 0.5)
        self.lab.say(after_shutdown=device_state())


def shown(result: Any) -> dict[str, Any]:
    if result is None:
        return {}
    errors = {rank: str(one.error)[:1500] for rank, one in result.items() if one.error is not None}
    return {"state": result.state, "text": _both_ends(result.text), "errors": errors,
            "warning": result.execution.get("warning"), "error": result.execution.get("error")}  # fmt: skip


def _both_ends(text: str, number: int = 2500) -> str:
    """Shorten a text: what a crash says first, and what came last, matter."""
    return text if len(text) <= 2 * number else f"{text[:number]}\n...\n{text[-number:]}"


def messages(group: Any) -> list[Any]:
    return [[r.rank, r.state, r.process_group, r.message] for r in group.status().ranks]


def stacks(group: Any) -> Any:
    try:
        return [[one.ranks, one.state, one.call, [f"{f.name}:{f.line} {f.function}" for f in one.frames[-3:]]]
                for one in group.stacks()]  # fmt: skip
    except Exception as err:
        return error_text(err)


def _stacks_of(group: Any, rank: Any) -> Any:
    """Return what faulthandler writes of a rank that does not answer: of all threads, without the GIL."""
    if rank.state != "unresponsive":
        return None
    os.kill(rank.pid, signal.SIGUSR2)
    time.sleep(0.5)
    threads = {}
    for thread in Path(f"/proc/{rank.pid}/task").iterdir():
        with contextlib.suppress(OSError):
            state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
            threads[thread.name] = [(thread / "comm").read_text().strip(), state, (thread / "wchan").read_text()]
    return {"rank": rank.rank, "threads": threads, "written": "".join(log_tail(group, rank.rank))[-4000:]}


def log_tail(group: Any, rank: int) -> list[str]:
    """The last notes and printed lines of a rank."""
    try:
        return [str(record.text)[-600:] for record in group.logs(rank)[-4:]]
    except Exception as err:
        return [error_text(err)]


@contextlib.contextmanager
def session(lab: Lab, ranks: int, **fields: Any) -> Iterator[tuple[Session, Any]]:
    """A server, and a group that is shut down at the end."""
    made = Session(lab)
    group = made.start(ranks, **fields)
    try:
        yield made, group
    finally:
        made.end(group)
        made.client.close()


def fresh(lab: Lab) -> None:
    """Another session in the same experiment."""
    time.sleep(0.5)
    lab.say(next="session")
