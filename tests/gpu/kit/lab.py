"""What facts and product share: experiments in processes of their own, with limits, and results as JSON lines.

Standard library only. The process that runs the experiments touches no device, starts no thread, and never waits for
an experiment longer than its limit; what an experiment leaves running is killed before the next one.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
MAX_TEXT = 4000
TAIL_BYTES = 3000
MAX_LOG_BYTES = 300_000
LEAST_SECONDS = 8.0  # an experiment that has less is not begun
CLEAN_SECONDS = 5.0


@dataclass(frozen=True)
class Experiment:
    """One question, and the function that asks it."""

    name: str
    seconds: float  # its limit
    asks: str
    right: str  # what a right answer looks like
    function: Callable[[Lab], None]


_experiments: list[Experiment] = []


def experiment(seconds: float, asks: str, right: str) -> Callable[[Callable[[Lab], None]], Callable[[Lab], None]]:
    """Add a function to the experiments, in the order in which they stand in their file."""

    def add(function: Callable[[Lab], None]) -> Callable[[Lab], None]:
        _experiments.append(Experiment(function.__name__, seconds, asks, right, function))
        return function

    return add


class Lab:
    """What an experiment needs: whether it is a dry run, a folder of its own, and where its results go."""

    def __init__(self, name: str, out: Path, folder: Path, *, dry: bool, num_gpus: int, seconds: float) -> None:
        self.name = name
        self.out = out
        self.folder = folder
        self.dry = dry
        self.num_gpus = num_gpus
        self._begun = time.monotonic()
        self._seconds = seconds

    @property
    def left(self) -> float:
        """Return how many seconds it may still take."""
        return self._seconds - (time.monotonic() - self._begun)

    def say(self, **fields: Any) -> None:
        """Append a line of results; it is on the disk when this returns."""
        append(self.out, {"experiment": self.name, "at": round(time.monotonic() - self._begun, 3), **fields})

    @contextlib.contextmanager
    def step(self, what: str, **fields: Any) -> Iterator[dict[str, Any]]:
        """Say how long a step took and how it failed, if it did; a failed one does not end the experiment."""
        found: dict[str, Any] = {}
        begun = time.monotonic()
        try:
            yield found
        except Exception as err:  # the outermost level of a step
            found["error"] = error_text(err)
        self.say(step=what, seconds=round(time.monotonic() - begun, 3), **fields, **found)


def error_text(err: BaseException) -> str:
    """Return type, message and the last places of an exception."""
    places = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in traceback.extract_tb(err.__traceback__)[-3:]]
    return f"{type(err).__module__}.{type(err).__name__}: {str(err)[:MAX_TEXT]} [{' < '.join(reversed(places))}]"


def append(out: Path, line: dict[str, Any]) -> None:
    """Append one line at once, from any process."""
    data = json.dumps(line, default=_plain, ensure_ascii=False) + "\n"
    descriptor = os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, data.encode("utf-8", "replace"))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _plain(value: Any) -> Any:
    return str(value)[:MAX_TEXT]


# -- devices, asked from outside ----------------------------------------------------------------------


def nvidia_smi(*arguments: str, seconds: float = 10.0) -> list[str]:
    """Return the lines that nvidia-smi prints; none if it is missing or does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []


def num_gpus() -> int:
    """Return how many devices the driver lists."""
    return sum(line.startswith("GPU ") for line in nvidia_smi("-L"))


# In a process of its own: the one that asks may be forked later, or hang.
_STATE = """
import json, pynvml
pynvml.nvmlInit()
found = {"used_mib": [], "processes_mib": {}}
for index in range(pynvml.nvmlDeviceGetCount()):
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    found["used_mib"].append(pynvml.nvmlDeviceGetMemoryInfo(handle).used >> 20)
    for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle):
        found["processes_mib"][process.pid] = process.usedGpuMemory and process.usedGpuMemory >> 20
print(json.dumps(found))
"""


def device_state() -> dict[str, Any]:
    """Return the memory of each device in MiB and what each process holds, as the driver tells."""
    command = [sys.executable, "-c", _STATE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=15, check=False)
        return json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired):
        return {"used_mib": "no answer"}
    except ValueError:
        return {"used_mib": (done.stderr.strip().splitlines() or ["no answer"])[-1][:200]}


# -- processes ----------------------------------------------------------------------------------------


def descendants(root: int) -> list[int]:
    """Return all processes below one, deepest last."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(entry))
    found, new = [], [root]
    while new:
        new = [child for parent in new for child in parents.get(parent, ())]
        found += new
    return found


def end_all() -> list[int]:
    """Kill everything below this process, and reap it; return what was there."""
    seen: set[int] = set()
    deadline = time.monotonic() + CLEAN_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        there = descendants(os.getpid())
        if not there:
            break
        seen.update(there)
        for pid in there:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    return sorted(seen)


# -- running ------------------------------------------------------------------------------------------


def main(title: str, prepare: Callable[[], None] | None = None) -> int:
    """Run the experiments of this program that the command line names; all of them by default."""
    options = _options(title)
    if options.list:
        for one in _experiments:
            print(f"{one.name:16} {one.seconds:4.0f} s  {one.asks}")
        return 0
    chosen = _chosen(options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    gpus = 0 if options.dry else num_gpus()
    deadline = time.monotonic() + options.seconds
    append(options.out, {"run": title, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "gpus": gpus,
                         "dry": options.dry, "python": sys.version.split()[0], "pid": os.getpid(),
                         "experiments": [one.name for one in chosen]})  # fmt: skip
    if prepare is not None:
        begun = time.monotonic()
        prepare()
        append(options.out, {"run": title, "prepared_seconds": round(time.monotonic() - begun, 2)})
    try:
        _run_all(chosen, deadline, options, gpus)
    finally:
        end_all()
    return 0


def _run_all(chosen: list[Experiment], deadline: float, options: argparse.Namespace, gpus: int) -> None:
    for one in chosen:
        limit = min(one.seconds * options.scale, deadline - time.monotonic())
        if limit < LEAST_SECONDS:
            append(
                options.out, {"experiment": f"{options.title}:{one.name}", "end": "not begun", "why": "no time is left"}
            )
            print(f"{one.name}: not begun", flush=True)
            continue
        _run(one, limit, options, gpus)


def _options(title: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument(
        "names", nargs="*", help="experiments; all by default. NAME: or :NAME takes all from or up to it"
    )
    parser.add_argument("--dry", action="store_true", help="gloo on the CPU: tries the programs, answers nothing")
    parser.add_argument("--out", type=Path, default=Path("results.jsonl"), help="where results are appended")
    parser.add_argument("--log", type=Path, help="what processes print; default: beside the results")
    parser.add_argument("--seconds", type=float, default=1e9, help="for all together")
    parser.add_argument("--scale", type=float, default=1.0, help="of all limits, for a slow machine")
    parser.add_argument("--without", default="", help="experiments to leave out: NAME,NAME")
    parser.add_argument("--list", action="store_true", help="list the experiments")
    options = parser.parse_args()
    options.title = title
    options.out = options.out.absolute()
    options.log = (options.log or options.out.with_suffix(".log")).absolute()
    return options


def _chosen(options: argparse.Namespace) -> list[Experiment]:
    known = [one.name for one in _experiments]
    wanted: list[str] = []
    for name in options.names:
        first, colon, last = name.partition(":")
        if bad := [part for part in (first, last) if part and part not in known]:
            raise SystemExit(f"there is no experiment {bad[0]}; they are: {' '.join(known)}")
        begin = known.index(first) if first else 0
        end = known.index(last) if last else (len(known) - 1 if colon else begin)
        wanted += known[begin : end + 1]
    left_out = options.without.split(",")
    by_name = {one.name: one for one in _experiments}
    return [by_name[name] for name in (wanted or known) if name not in left_out]


def _run(one: Experiment, limit: float, options: argparse.Namespace, gpus: int) -> None:
    name = f"{options.title}:{one.name}"
    folder = Path(tempfile.mkdtemp(prefix="kit-", dir="/tmp"))
    printed = folder.with_suffix(".log")
    begun = time.monotonic()
    append(options.out, {"experiment": name, "begin": one.asks, "right": one.right, "limit": round(limit, 1)})
    lab = Lab(name, options.out, folder, dry=options.dry, num_gpus=gpus, seconds=limit)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _be(one, lab, limit, printed)
    end = _wait(pid, limit)
    seconds = round(time.monotonic() - begun, 2)
    left = [other for other in end_all() if other != pid]
    line: dict[str, Any] = {"experiment": name, "end": end, "seconds": seconds, "killed_after": len(left)}
    if end != "ok":
        line["printed"] = _tail(printed)
    if gpus:
        line["device_after"] = device_state()
    append(options.out, line)
    print(f"{one.name}: {end}, {seconds} s", flush=True)
    with contextlib.suppress(OSError), options.log.open("ab") as log:
        log.write(printed.read_bytes()[-MAX_LOG_BYTES:])  # those of other programs that run now stand beside it
        printed.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _be(one: Experiment, lab: Lab, limit: float, printed: Path) -> None:
    """Be the process of an experiment."""
    code = 1
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        log = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 - until the end
        sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        print(f"\n==== {lab.name}", flush=True)
        faulthandler.enable(sys.stderr)
        faulthandler.dump_traceback_later(max(1.0, limit - 1.5), file=sys.stderr)
        one.function(lab)
        code = 0
    except BaseException as err:  # the outermost level of the process
        traceback.print_exc()
        lab.say(failed=error_text(err))
    finally:
        sys.stderr.flush()
        os._exit(code)


def _wait(pid: int, limit: float) -> str:
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return "ok" if code == 0 else "failed" if code == 1 else f"exit {code}"
        time.sleep(0.05)
    return "timed out"


def _tail(path: Path) -> str:
    return path.read_bytes()[-TAIL_BYTES:].decode("utf-8", "replace") if path.exists() else ""
