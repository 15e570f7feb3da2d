"""Measures the time of a cell on this rank, in the side thread, from the agent's first question on.

A sample costs about 20 us and an answer 2 ms; the interval between samples grows where they cost more. Nothing runs
while no cell does, nor after the agent has stopped asking.
"""

from __future__ import annotations

import contextlib
import platform
import random
import sys
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jupyter_dist.rank.collectives.diagnosis import mainthread
from jupyter_dist.rank.guard.own import os, read_text, threading, time
from jupyter_dist.rank.output import track
from jupyter_dist.rank.part import RankCore, RankPart, RankRequest

from . import stacks
from .arrivals import Arrivals
from .growth import Growth
from .pauses import CollectorPauses
from .stacks import Doing
from .updates import ModelUpdates

SAMPLE_SECONDS = 0.1
FIRST_SAMPLE_SECONDS = 0.08  # so that two looks have enough of them
FIRST_SAMPLES = 40  # that come at this interval, whatever they cost: on a busy machine each costs more
MOST_COST = 0.0003  # of a core, for samples
LATER_SAMPLE_SECONDS = 0.5
NUM_WAKES, MAX_WAKE_SECONDS = 8, 3e-4
BURST_COST = 0.003  # in the first seconds, so that a cause is soon found
BURST_SECONDS = 12.0
LATE_SECONDS = 0.01
USUAL_SWITCH_SECONDS, SWITCH_SECONDS = 0.005, 0.0005  # after which a thread that waits for the GIL asks for it
GIL_SECONDS = 2 * SWITCH_SECONDS
FORGET_SECONDS = 30.0  # an agent that has not asked for so long does not ask again
MAX_LINES = 40
MAX_ARRIVALS = 256
MAX_TIMES = 100  # of samples of a line
_MAY_BLOCK = frozenset({stacks.RUN, "save", "print"})
# System calls that wait for a lock, the GIL too, for a time, or for any of several descriptors, as event loops do.
_WAITS: set[int] = {
    "x86_64": {202, 7, 23, 35, 230, 232, 270, 271, 281},
    "aarch64": {98, 22, 72, 73, 101, 115},
}.get(platform.machine(), set())


@dataclass
class SampleCount:
    """The samples in which the main thread did the same."""

    number: int = 0
    cpu_ns: int = 0  # of processor time before them
    times: list[int] = field(default_factory=list)  # in microseconds of the monotonic clock


Samples = defaultdict[Doing, SampleCount]


class PaceMeter(RankPart):
    """Samples the main thread while a cell runs and the agent asks."""

    def __init__(self, core: RankCore) -> None:
        super().__init__(core)
        self._namespace, self._memory, self._running = core.namespace, core.memory, core.running
        self._measured: MeasuredCell | None = None

    def timeout(self) -> float | None:
        """Return the seconds until the next sample; None if there is none."""
        return None if self._measured is None else max(0.0, self._measured.next_sample - time.monotonic())

    def tick(self) -> None:
        """Take a sample if it is time."""
        measured = self._measured
        if measured is None:
            return
        now = time.monotonic()
        if self._running_id() != measured.execution_id or now - measured.asked_at > FORGET_SECONDS:
            self._stop()
        elif now >= measured.next_sample:
            measured.sample(self._namespace, now)

    def requests(self) -> Mapping[str, RankRequest]:
        """Return the handler of `pace`."""
        return {"pace": lambda header, _: self.answer(header["max_arrivals"])}

    def answer(self, max_arrivals: int) -> dict[str, Any]:
        """Return the measurements since the last call, and begin to measure if there are none."""
        running = self._running()
        if running is None:
            self._stop()
            return {"execution_id": None}
        execution_id = running.execution_id
        if self._measured is None or self._measured.execution_id != execution_id:
            self._stop()
            self._measured = MeasuredCell(execution_id, running.began_ns)
        measured = self._measured.take(min(max_arrivals, MAX_ARRIVALS))
        grown = self._measured.growth.look(self._namespace, self._measured.cell_file)
        updates = self._measured.updates.look(self._namespace)
        memory = self._memory.counters()
        device = [self._memory.busy_percent(), self._memory.num_alloc_retries]
        return {**measured, "memory": memory, "device": device, "grown": grown, **updates}

    def _running_id(self) -> str | None:
        running = self._running()
        return None if running is None else running.execution_id

    def _stop(self) -> None:
        if self._measured is not None:
            self._measured.end()
            self._measured = None


class MeasuredCell:
    """The measurements of one execution since the last answer."""

    def __init__(self, execution_id: str, began_ns: int) -> None:
        self.execution_id = execution_id
        self.pauses = CollectorPauses()
        self.growth = Growth()
        self.updates = ModelUpdates()
        self.cell_file = ""  # as the code of the cell is called in stacks
        self.asked_at = self._began = self._since = time.monotonic()
        self.next_sample = self._began + SAMPLE_SECONDS
        self._chance = random.Random()  # noqa: S311  (its own: cells draw from the other)
        self._clock = time.pthread_getcpuclockid(threading.main_thread().ident or 0)
        self._arrivals = Arrivals(began_ns)
        self._samples: Samples = _no_samples()
        self._num_samples, self._cost = 0, 0.0
        self._slept_at: float | None = None  # the thread's processor time after the last sample
        self._wakes: deque[float] = deque(maxlen=NUM_WAKES)  # the processor time from sample to sample
        self._num_late, self._process_seconds = 0, time.process_time()
        self._num_taken = 0  # samples when the last answer was given
        self._activity, self._num_compiles = "", 0  # of the last sample; how many compilations were found
        self._sampled_cpu_ns = self._cpu_ns = time.clock_gettime_ns(self._clock)
        self._delay_ns = _run_delay_ns(os.getpid())
        self._side_delay_ns = _run_delay_ns(threading.get_native_id())
        self.pauses.begin()
        # Else a sample is found up to 5 ms after it was due, where the main thread gives up the GIL by itself. In the
        # first seconds only: threads of the cell that compute would pass the GIL on ten times as often.
        _switch(USUAL_SWITCH_SECONDS, SWITCH_SECONDS)

    def end(self) -> None:
        """Measure no more."""
        self.pauses.end()
        _switch(SWITCH_SECONDS, USUAL_SWITCH_SECONDS)

    def sample(self, namespace: dict[str, Any], now: float) -> None:
        """Take a sample of the main thread."""
        began = time.thread_time()
        worked = 0.0
        if self._slept_at is not None:
            self._wakes.append(worked := began - self._slept_at)
        cpu_ns = time.clock_gettime_ns(self._clock)
        late = self._note_lateness(now) - worked
        # The main thread may have had the GIL when the sample was due, at an earlier line.
        waited = late > GIL_SECONDS and (cpu_ns - self._sampled_cpu_ns) / 1e9 >= late / 4
        doing = stacks.doing(namespace, waited)
        if doing is not None:
            doing = _with_state(doing)
            self._num_compiles += doing.activity == "compile" != self._activity
            self._activity = doing.activity
            self.cell_file = doing.cell
            sampled = self._samples[doing]
            sampled.number += 1
            sampled.cpu_ns += cpu_ns - self._sampled_cpu_ns
            sampled.times.append(time.monotonic_ns() // 1000)
        self._sampled_cpu_ns = cpu_ns
        self._num_samples += 1
        self._slept_at = time.thread_time()
        # A sample costs the waking up besides: the least of the last times, in which the thread did nothing else.
        self._cost += self._slept_at - began + min(*self._wakes, MAX_WAKE_SECONDS, MAX_WAKE_SECONDS)
        is_new = now - self._began < BURST_SECONDS
        most, least = (BURST_COST, SAMPLE_SECONDS) if is_new else (MOST_COST, LATER_SAMPLE_SECONDS)
        if not is_new:
            _switch(SWITCH_SECONDS, USUAL_SWITCH_SECONDS)
        if self._num_samples < FIRST_SAMPLES:
            interval = FIRST_SAMPLE_SECONDS
        else:
            interval = max(least, self._cost / self._num_samples / most)
        # At random times, which are in no rhythm with a loop.
        self.next_sample = now + interval * self._chance.uniform(0.5, 1.5)

    def _note_lateness(self, now: float) -> float:
        """Return by how many seconds the sample is late.

        Count it if nothing ran meanwhile: the process was stopped, throttled or swapped out.
        """
        used = time.process_time()
        late = now - self.next_sample
        if late > LATE_SECONDS and used - self._process_seconds < late / 2:
            delay_ns = _run_delay_ns(threading.get_native_id())
            # The side thread got no core because other programs used it: that is not a stopped process.
            self._num_late += (delay_ns - self._side_delay_ns) / 1e9 < late / 2
            self._side_delay_ns = delay_ns
        self._process_seconds = used
        return late

    def take(self, max_arrivals: int) -> dict[str, Any]:
        """Return the measurements since the last call."""
        self.asked_at = now = time.monotonic()
        seconds, since, self._since = now - self._since, self._since, now
        samples, self._samples = self._samples, _no_samples()
        num_collections, collecting, collecting_line = self.pauses.take()
        num_compiles, self._num_compiles = self._num_compiles, 0
        stopped = seconds * self._num_late / max(1, self._num_samples - self._num_taken)
        self._num_late, self._num_taken = 0, self._num_samples
        self._side_delay_ns = _run_delay_ns(threading.get_native_id())
        delay_ns, cpu_ns = _run_delay_ns(os.getpid()), time.clock_gettime_ns(self._clock)
        delay, self._delay_ns = delay_ns - self._delay_ns, delay_ns
        cpu, self._cpu_ns = cpu_ns - self._cpu_ns, cpu_ns
        return {
            "execution_id": self.execution_id,
            "seconds": seconds,
            "samples": _rows(samples),
            "arrivals": self._arrivals.take(max_arrivals),
            "collections": [num_collections, collecting, _line(collecting_line)],
            "compiles": num_compiles,
            "cpu_seconds": cpu / 1e9,
            "run_delay_seconds": delay / 1e9,
            "stopped_seconds": stopped,
            "steps": track.steps_between(since, now),
            "now": time.monotonic_ns() // 1000,
        }


def _switch(before: float, after: float) -> None:
    """Set the interval after which a thread asks for the GIL, unless the cell has set another one."""
    if abs(sys.getswitchinterval() - before) < SWITCH_SECONDS / 10:
        sys.setswitchinterval(after)


def _no_samples() -> Samples:
    return defaultdict(SampleCount)


def _with_state(doing: Doing) -> Doing:
    """Add whether the main thread waits in the kernel: for other ranks in a backward pass, or for a file or a time."""
    if doing.activity == "backward":
        return doing._replace(activity="wait") if _main_sleeps() else doing  # in C++, for gradients
    if doing.activity in _MAY_BLOCK:
        number, _ = mainthread.main_thread_syscall()
        return doing._replace(is_blocked=number is not None and number not in _WAITS)
    return doing


def _main_sleeps() -> bool:
    with contextlib.suppress(OSError, IndexError):
        return read_text(f"/proc/self/task/{os.getpid()}/stat").rpartition(")")[2].split()[0] == "S"
    return False


def _run_delay_ns(thread: int) -> int:
    """Return for how long a thread of this process has waited for a core, although it could have run."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(read_text(f"/proc/self/task/{thread}/schedstat").split()[1])
    return 0


def _rows(samples: Samples) -> list[list[Any]]:
    """Return a row for each activity and line: the most frequent ones, and all others of the activity together."""
    ordered = sorted(samples.items(), key=lambda item: -item[1].number)
    rows = [
        [
            doing.activity,
            found.number,
            found.cpu_ns // 1000,
            *map(_line, (doing.line, doing.inner)),
            doing.is_blocked,
            _line(doing.outer),
            doing.runs,
            found.times[-MAX_TIMES:],
            [_line(line) for line in doing.maybe],
        ]
        for doing, found in ordered[:MAX_LINES]
    ]
    others: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for doing, found in ordered[MAX_LINES:]:
        others[doing.activity][0] += found.number
        others[doing.activity][1] += found.cpu_ns // 1000
    return [*rows, *([activity, *counts, None, None, False, None, "c", [], []] for activity, counts in others.items())]


def _line(line: stacks.Line | None) -> list[Any] | None:
    return None if line is None else [line.file, line.number, line.function, line.code]
