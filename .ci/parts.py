"""Run targets of the Makefile one after the other, even if one fails, and report how long each took.

    python3 .ci/parts.py test-python test-ray+test-typescript test-browser

Targets joined by + are one part: they run side by side, and the output of each comes when it is done.
What a part leaves running is named and ended, and the part has failed.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SETTLE_SECONDS = 15.0
LIMIT_SECONDS = 60 * 60.0  # twice what the longest part takes on a busy machine
NEEDED = "setup"  # without it nothing else can run
_PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Part:
    """What came of one target."""

    name: str
    problem: str | None
    seconds: float
    cpu_seconds: float


def main(names: list[str]) -> int:
    # Processes that a test forgets become our children, so their CPU time is counted, and they are noticed.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    parts: list[Part] = []
    for name in names:
        print(f"==== {name}", flush=True)
        parts.append(run(name))
        if parts[-1].problem and name == NEEDED:
            break
    report(parts)
    return 1 if any(part.problem for part in parts) else 0


def run(name: str) -> Part:
    began, cpu_before = time.monotonic(), cpu_seconds()
    problems = _make(name)
    seconds = time.monotonic() - began
    left = end_children()
    problems += [f"left running: {', '.join(left)}"] if left else []
    return Part(name, "; ".join(problems) or None, seconds, cpu_seconds() - cpu_before)


def _make(part: str) -> list[str]:
    targets = part.split("+")
    together = ["--keep-going", "--output-sync=target", f"--jobs={len(targets)}"] if len(targets) > 1 else []
    try:
        command = [os.environ.get("MAKE", "make"), "--no-print-directory", *together, *targets]
        done = subprocess.run(command, check=False, timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        return [f"not done after {duration(LIMIT_SECONDS)}"]
    return ["failed"] if done.returncode else []


def report(parts: list[Part]) -> None:
    width = max(18, *(len(part.name) for part in parts))
    print(f"\n{'part':<{width}}{'took':>12}{'CPU time':>12}")
    for part in parts:
        print(f"{part.name:<{width}}{duration(part.seconds):>12}{duration(part.cpu_seconds):>12}   {part.problem or 'ok'}")
    total = duration(sum(part.seconds for part in parts))
    bad = [part.name for part in parts if part.problem]
    if bad:
        again = " && ".join(f"make {name.replace('+', ' ')}" for name in bad)
        print(f"\nFAILED: {', '.join(bad)} (all parts took {total}). To run only what failed: {again}")
    else:
        print(f"\nPASSED: {', '.join(part.name for part in parts)}, in {total} on {os.cpu_count()} cores.")


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def cpu_seconds() -> float:
    """Of all that has ended below this process."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def end_children() -> list[str]:
    """Wait a little for the children that are left, then end them; return their commands."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while children() and time.monotonic() < deadline:
        time.sleep(0.1)
    left = children()
    while found := children():  # with each that ends come its own
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    return [f"{pid} ({command})" for pid, command in left.items()]


def children() -> dict[int, str]:
    """The living ones; the dead are collected."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return dict(_living())
        except ChildProcessError:
            return {}


def _living() -> Iterator[tuple[int, str]]:
    for pid in Path("/proc/self/task", str(os.getpid()), "children").read_text().split():
        command = Path("/proc", pid, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        yield int(pid), command.strip()[:120]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
