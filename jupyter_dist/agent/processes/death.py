"""Describes how a rank's process ended."""

from __future__ import annotations

import re
import signal
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_dist.protocol.models.sentences import say, words_of
from jupyter_dist.protocol.wire.places import cut
from jupyter_dist.protocol.wire.specs import EXIT_DESCRIPTORS_CLOSED, EXIT_MAIN_ENDED

if TYPE_CHECKING:
    from jupyter_dist.protocol.models import models

_OUR_CODES: dict[int | None, str] = {
    EXIT_DESCRIPTORS_CLOSED: say("a cell closed file descriptors that the rank needs"),
    EXIT_MAIN_ENDED: say("its main thread has ended (pthread_exit), so it could run nothing more"),
}
LAST_WORDS_LINES = 20
LAST_WORDS_BYTES = 1 << 16
MAX_FRAMES = 5  # of each thread, innermost first
MAX_WHAT = 300
MAX_NAMED = 5
LOOK_SECONDS = 1.0
RECENT_SECONDS = 30.0  # the kernel counts a kill at once; a process with much memory ends seconds later
ZYGOTE_KILLED = "its zygote, the process that it was forked from, was killed"
SHIM_KILLED = "the process that watches over it was killed"

# As faulthandler writes them.
_THREAD = re.compile(r"(Current thread|Thread) 0x[0-9a-f]+ .*\(most recent call first\):$")
_FRAME = re.compile(r'  File "(.*)", line \d+ in ')
_OURS = re.compile(r"/jupyter_dist/(rank|agent)/|/IPython/|/asyncio/|/threading\.py$")
_WHAT = re.compile(r"^  what\(\):  (?:\[[^\]]*\] )?(.+)$", re.MULTILINE)  # gloo puts a file in front

_CGROUP_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Ending:
    """How a process ended, from its exit status; without code and signal: it never began."""

    code: int | None
    signal: int | None
    peak_bytes: int | None = None  # its peak resident memory
    because: str | None = None  # a more exact reason, if known
    out_of_memory: bool = False  # by the kernel of another machine; for this one see OutOfMemory
    killed: tuple[tuple[int, str], ...] = ()  # pid and name of the processes it had started that were ended with it


def _counter_files() -> tuple[Path, ...]:
    """Yield the counter files of this process's control group (v2 and v1), and of the machine."""
    found = [Path("/proc/vmstat")]
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        below = path.lstrip("/")
        if controllers == "":
            found += [_CGROUP_ROOT / below / "memory.events", _CGROUP_ROOT / "unified" / below / "memory.events"]
        elif "memory" in controllers.split(","):
            # In a container the path may be the host's, while the mount starts at the container.
            found += [
                _CGROUP_ROOT / "memory" / below / "memory.oom_control",
                _CGROUP_ROOT / "memory/memory.oom_control",
            ]
    return tuple(dict.fromkeys(path for path in found if path.exists()))


class OutOfMemory:
    """Counts kills by the kernel's out-of-memory killer, in this control group or on this machine.

    The counts include other programs, and processes that a rank survived: only a kill of the last seconds can concern
    a rank.
    """

    def __init__(self, files: Sequence[Path] | None = None) -> None:
        self._files = _counter_files() if files is None else tuple(files)
        self._counts = deque([(time.monotonic(), self._count())])
        self._explained: dict[object, float] = {}  # what died of it, and when

    def look(self, now: float | None = None) -> None:
        """Note the counts, once a second at most, so that there are some of a while ago."""
        now = time.monotonic() if now is None else now
        if now - self._counts[-1][0] < LOOK_SECONDS:
            return
        self._counts.append((now, self._count()))
        while self._counts[1][0] <= now - RECENT_SECONDS:
            self._counts.popleft()

    def explain(self, process: object, ending: Ending) -> Ending:
        """Return the ending with `out_of_memory`, if the kernel has lately killed more than is known."""
        if ending.signal != signal.SIGKILL:
            return ending
        since, before = self._counts[0]
        self._explained = {other: at for other, at in self._explained.items() if at >= since}
        counted = zip(self._count(), before, strict=True)
        kills = max((now - then for now, then in counted if now is not None and then is not None), default=0)
        died = ending.because or process  # all ranks of a zygote die of one kill
        if died not in self._explained and kills > len(self._explained):
            self._explained[died] = time.monotonic()
        return replace(ending, out_of_memory=died in self._explained)

    def _count(self) -> list[int | None]:
        return [_oom_kills(path) for path in self._files]


class LastWords:
    """The end of what a rank wrote to stderr."""

    def __init__(self) -> None:
        self._data = b""

    def add(self, data: bytes) -> None:
        """Add stderr output."""
        self._data = (self._data + data[-LAST_WORDS_BYTES:])[-LAST_WORDS_BYTES:]

    def lines(self) -> str:
        """Return the last lines, as text; of the stacks that a crash adds, what is not ours."""
        lines = _without_our_frames(self._data.decode("utf-8", "replace").splitlines())
        return "\n".join(lines[-LAST_WORDS_LINES:])


def _without_our_frames(lines: Sequence[str]) -> list[str]:
    """Return the lines without frames of this package and of what runs it, nor threads that have no others."""
    kept: list[str] = []
    header: str | None = None  # of a thread, until it has a frame
    frames = 0
    for line in lines:
        if _THREAD.match(line):
            header, frames = line, 0
        elif found := _FRAME.match(line):
            frames += not _OURS.search(found[1])
            if _OURS.search(found[1]) or frames > MAX_FRAMES:
                continue
            kept += [line] if header is None else [header, line]
            header = None
        elif line.strip() and not line.startswith("Extension modules: "):
            kept.append(line)
    return kept


def exit_model(ending: Ending, out_of_memory: bool, because: str | None, stderr: str) -> models.RankExit:
    """Return the `exit` of a rank as in docs/api.md."""
    return {
        "code": ending.code,
        "signal": ending.signal,
        "reason": (reason := describe(ending, out_of_memory, because, stderr)),
        "reason_words": words_of(reason),
        "stderr": stderr,
        "peak_bytes": ending.peak_bytes,
    }


def describe(ending: Ending, out_of_memory: bool, because: str | None, stderr: str = "") -> str:
    """Return a phrase that follows "Rank 1 ".

    Args:
        ending: how it ended.
        out_of_memory: whether the kernel killed it because memory was short.
        because: the reason if we killed it.
        stderr: its last words, which have the reason if C++ code ended it.
    """
    if ending.code in _OUR_CODES:
        return say("ended: %1", _OUR_CODES[ending.code])
    if ending.signal is None:
        return say("could not be started") if ending.code is None else say("exited with code %1", ending.code)
    number = ending.signal
    name = signal.Signals(number).name if number in signal.valid_signals() else f"signal {number}"
    held = f"{ending.peak_bytes / 2**30:.1f} GiB" if ending.peak_bytes else ""
    if out_of_memory and ending.because is None:
        return (
            say("was killed (out of memory when it held %1: SIGKILL)", held)
            if held
            else say("was killed (out of memory: SIGKILL)")
        )
    if (because := because or ending.because) is not None:
        return say("was killed (%1, out of memory)", because) if out_of_memory else say("was killed (%1)", because)
    if number != signal.SIGKILL:
        error = _uncaught(stderr) if number == signal.SIGABRT else None
        return say("was killed (%1)", f"{name}: {error}" if error else name)
    return (
        say("was killed (%1, by another process, not by the kernel, peak memory %2)", name, held)
        if held
        else say("was killed (%1, by another process, not by the kernel)", name)
    )


def _uncaught(stderr: str) -> str | None:
    """Return the text of the C++ exception that nothing caught, as the runtime of C++ writes it before it aborts."""
    found = _WHAT.findall(stderr)
    return cut(found[-1].strip(), MAX_WHAT) if found else None


def describe_companions(ending: Ending) -> str | None:
    """Return a sentence about the processes that it had started and that ended with it, or None."""
    if not ending.killed:
        return None
    names = ", ".join(f"{name} ({pid})" for pid, name in ending.killed[:MAX_NAMED])
    more = len(ending.killed) - MAX_NAMED
    others = f" and {more} more" if more > 0 else ""
    return f"{len(ending.killed)} process(es) that it had started were ended with it: {names}{others}."


def _oom_kills(path: Path) -> int | None:
    """Return the count in a file; None if it cannot be read now, for no descriptors are left: that proves no kill."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
