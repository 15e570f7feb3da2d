"""Run targets of the Makefile one after the other, even if one fails, and report how long each took.

    python3 .ci/parts.py [--again] setup lint test-python+test-ray+test-browser

Targets joined by + run two at a time, in this order. What the first prints is shown at once, and all that another
printed when it is done. The report repeats the lines that say what failed: of a long output, services keep the end.
What targets leave running is named and ended, and they have failed.

With --again, each target NAME whose tests failed is followed, when all others are done and nothing runs beside it, by
NAME-again, which runs these tests again. What passes then has passed, and the report names it. Of `test-first` that
comes at once: where its tests fail twice, nothing else is run.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

SETTLE_SECONDS = 60.0  # for what ends by itself, on a busy machine
LIMIT_SECONDS = 60 * 60.0  # twice what the longest part takes on a busy machine
LANES = 2  # as many as there are cores on the smallest machine that this runs on
NEEDED = ("setup", "test-first")  # where one fails, nothing else is run
FIRST = "test-first"
AFTER_FIRST = "AFTER_FIRST"  # tells the Makefile that its tests have passed
AGAIN = "--again"
# A second run would find the same; the tests of `test` have had theirs.
NEVER_AGAIN = ("lint", "setup", "extras", "test")
FAILED = "failed"
_LIBC = ctypes.CDLL(None)
_PR_SET_CHILD_SUBREAPER = 36
# Of pytest, Playwright, Vitest and make. Colours stand before some.
_FAILURE = re.compile(
    r"(FAILED|ERROR) |_{3,} .+ _{3,}$|E   +\S|\s+\d+\) tests/|\s+(\w*Error: |Retry #\d)|\s*FAIL |make.* \*\*\* "
    # Of Playwright: the line that failed, what it waited for, why it did not come, the page (ui-tests/tests/scene.ts).
    r"|\s+> +\d+ \||\s*(Locator|Expected.*|Received.*): |\s+- (element is (not|outside)|<.*> intercepts)"
    r"|\s+(The page: |Test timeout of)"
    # What a hub said, and where a page went while a test waited for another.
    r"|\[WebServer\] \[[EC] .*JupyterHub|\s+navigated to "
)
# Of these the names of tests: of pytest, Playwright, Vitest.
_TEST = re.compile(r"(FAILED|ERROR) \S|\s+\d+\) tests/|\s*FAIL ")
_SECOND = "second run: "
_FLAKY = re.compile(r"\s+\d+ flaky$")  # of Playwright, where it has tried again by itself; the tests follow, further in
# What follows is about another test, or another try of it: equal lines of both are shown.
_HEADING = re.compile(r"\s+\d+\) tests/|\s+Retry #\d|_{3,} .+ _{3,}$")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
MAX_FAILURES = 60  # lines of each part
_FOLLOW_SECONDS = 0.5
_showing = threading.Lock()


@dataclass
class Part:
    """What came of one target."""

    name: str
    problem: str | None
    seconds: float
    failures: list[str]  # lines of its output
    second: list[str] = field(default_factory=list)  # tests that passed in a second run
    again_seconds: float | None = None  # how long its second run took
    cpu_seconds: float = 0.0  # of all its processes that have ended before it

    @property
    def result(self) -> str:
        if self.again_seconds is None:
            return self.problem or "ok"
        outcome = "failed twice" if self.problem else "ok at the second run"
        return f"{outcome}, alone, of what failed ({duration(self.again_seconds)})"


def main(arguments: list[str]) -> int:
    _adopt_orphans()  # that a test forgets: so they are noticed
    began, parts = time.monotonic(), []
    for argument in (each for each in arguments if each != AGAIN):
        done = alone(argument) if "+" not in argument else together(argument.split("+"))
        if left := end_children():
            note_left(done[-1], left, "it" if len(done) == 1 else "one of them")
        parts += done
        if argument == FIRST and AGAIN in arguments and done[-1].problem == FAILED:
            run_again(done[-1])
        if argument in NEEDED and done[-1].problem:
            break
        if argument == FIRST:
            os.environ[AFTER_FIRST] = "1"
    if AGAIN in arguments:
        for part in parts:
            if part.problem == FAILED and part.again_seconds is None and part.name not in NEVER_AGAIN:
                run_again(part)
    report(parts, time.monotonic() - began)
    return 1 if any(part.problem for part in parts) else 0


def _adopt_orphans() -> None:
    """Become the parent of all processes below whose parents end: their CPU time is counted here."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def alone(target: str) -> list[Part]:
    print(f"==== {target}", flush=True)
    return [_make_in_sight(target)]


def together(targets: list[str]) -> list[Part]:
    """Most of the time of tests is waiting: two kinds of them take little longer than the longer one alone."""
    with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
        first = lanes.submit(_make_in_sight, targets[0])
        others = lanes.map(_make_and_show, targets[1:])
        return [first.result(), *others]


def run_again(part: Part) -> None:
    """Run the tests of a part again that failed."""
    print(f"==== {part.name}-again", flush=True)
    again = _make_in_sight(f"{part.name}-again")
    part.again_seconds = again.seconds
    if again.problem:
        part.failures += ["---- and when it was run again", *again.failures]
    else:
        part.problem, part.second = None, [line for line in part.failures if _TEST.match(line)]
    if left := end_children():
        note_left(part, left, "it")


def note_left(part: Part, left: list[str], which: str) -> None:
    part.problem = "; ".join(filter(None, [part.problem, f"{which} left running: {', '.join(left)}"]))


def _make_in_sight(target: str) -> Part:
    if sys.stdout.isatty():
        return _make(target)  # with its colours
    with tempfile.NamedTemporaryFile() as output, open(output.name, "rb") as reader:
        # Not a pipe: what a test leaves running would hold it open.
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            making = thread.submit(_make, target, output)
            is_done = False
            while not is_done:
                is_done = bool(concurrent.futures.wait([making], timeout=_FOLLOW_SECONDS).done)
                _show(reader)
        return making.result()


def _make_and_show(target: str) -> Part:
    with tempfile.TemporaryFile() as output:
        part = _make(target, output)
        output.seek(0)
        _show(output, f"==== {target} ({duration(part.seconds)})\n")
    return part


def _show(output: BinaryIO, heading: str = "") -> None:
    with _showing:
        print(heading, end="", flush=True)
        shutil.copyfileobj(output, sys.stdout.buffer)
        sys.stdout.flush()


def _make(target: str, output: BinaryIO | None = None) -> Part:
    began, problem = time.monotonic(), None
    command = [os.environ.get("MAKE", "make"), "--no-print-directory", target]
    # Browsers, groups and what they start are orphans: make counts their time as the part's.
    process = subprocess.Popen(command, stdout=output, stderr=output, preexec_fn=_adopt_orphans)
    code, usage = None, None
    while code is None and time.monotonic() - began < LIMIT_SECONDS:
        time.sleep(_FOLLOW_SECONDS / 5)
        code, usage = _ended(process)
    if code is None:
        problem = f"not done after {duration(LIMIT_SECONDS)}"
        process.kill()
    elif code:
        problem = FAILED
    part = Part(target, problem, time.monotonic() - began, [])
    if usage is not None:
        part.cpu_seconds = usage.ru_utime + usage.ru_stime
    if output is not None:
        part.failures, part.second = failures(output) if problem else [], second_runs(output)
    return part


def _ended(process: subprocess.Popen[bytes]) -> tuple[int | None, resource.struct_rusage | None]:
    """Return the exit code of a process that has ended, and the usage of it and of all that ended below it."""
    pid, status, usage = os.wait4(process.pid, os.WNOHANG)
    if not pid:
        return None, None
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage


def failures(output: BinaryIO) -> list[str]:
    """Return the lines about failures, each once for a try of a test."""
    output.seek(0)
    heading, found = "", {}
    for line in (_COLOUR.sub("", line.decode(errors="replace").rstrip()) for line in output):
        if _HEADING.match(line):
            heading = heading + line if "Retry #" in line else line
        if _FAILURE.match(line):
            found[heading, line[:200]] = line[:200]
    return list(found.values())


def second_runs(output: BinaryIO) -> list[str]:
    """Return the tests that passed in a second run, of this program below or of Playwright."""
    output.seek(0)
    found, is_flaky = [], False
    for line in (_COLOUR.sub("", line.decode(errors="replace").rstrip()) for line in output):
        if line.startswith(_SECOND):
            found.append(line.removeprefix(_SECOND))
        is_flaky = bool(_FLAKY.match(line)) or (is_flaky and line.startswith("    "))
        if is_flaky and line.startswith("    "):
            found.append(line.strip(" ─"))
    return list(dict.fromkeys(found))


def limited(found: list[str]) -> list[str]:
    more = [f"... and {len(found) - MAX_FAILURES} more"] if len(found) > MAX_FAILURES else []
    return [*found[:MAX_FAILURES], *more]


def report(parts: list[Part], seconds: float) -> None:
    print(f"\n{'part':<18}{'took':>12}{'CPU':>12}")
    for part in parts:
        print(f"{part.name:<18}{duration(part.seconds):>12}{duration(part.cpu_seconds):>12}   {part.result}")
    total = f"in {duration(seconds)} on {os.cpu_count()} cores, with {duration(cpu_seconds())} of CPU time"
    bad = [part.name for part in parts if part.problem]
    for part in parts:
        if part.failures:
            when = "" if part.problem else " at first"
            print(f"\n---- what failed in {part.name}{when}", *limited(part.failures), sep="\n")
    if second := [f"{_SECOND}{line.strip(' ─')}" for part in parts for line in part.second]:
        print("\n---- failed, and passed when it was run again: a fault that comes seldom", *second, sep="\n")
    if bad:
        print(f"\nFAILED: {', '.join(bad)}; all parts {total}. To run only what failed: make {' '.join(bad)}")
    else:
        print(f"\nPASSED: {', '.join(part.name for part in parts)}, {total}.")


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
