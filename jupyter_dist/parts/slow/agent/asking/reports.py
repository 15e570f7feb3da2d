"""What a rank reports of its pace, checked: cells can change what a rank sends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jupyter_dist.transport.rows import CodePlace, parse

MAX_ROWS = 64
MAX_ARRIVALS = 256
MAX_NUMBER = 1 << 62
MAX_STEPS = 200
MAX_GROWN = 10
MAX_MODELS = 8
MAX_TIMES = 200
MAX_MAYBE = 20


class Sampled(NamedTuple):
    """Samples of a rank in which it did the same for the same line."""

    activity: str
    number: int
    cpu_seconds: float
    place: CodePlace | None
    inner: CodePlace | None  # of the user's dataset, where a loader calls one
    is_blocked: bool = False  # in a system call
    outer: CodePlace | None = None  # the user's line that has called the function of this one
    runs: str = "torch"  # or `python`, or `c`: a function in C that the line itself calls
    times: tuple[int, ...] = ()  # in microseconds of its host's clock
    maybe: tuple[CodePlace, ...] = ()  # lines before that may have taken the time in place of this one


class Arrival(NamedTuple):
    """When a rank began a collective, in microseconds of its host's clock."""

    group: str
    name: str
    num_bytes: int
    seq: int
    began: int
    took: int | None
    on_device: bool = False  # its begin is when the rank's host asked for it


class Grown(NamedTuple):
    """A variable that only grows."""

    name: str
    kind: str
    by: int
    place: CodePlace | None = None  # where it is added to


class Updates(NamedTuple):
    """How often the parameters of a DistributedDataParallel model have changed since the report before."""

    group: str  # its process group
    num_bytes: int  # of its gradients
    changes: int


class ShardedUpdates(NamedTuple):
    """How often the parameters of an FSDP2 model have changed since the report before."""

    group: str  # its process group
    least_bytes: int  # of the gradients that are reduced together
    num_gradients: int  # collectives for the gradients of a backward pass
    changes: int


@dataclass(frozen=True)
class RankReport:
    """What a rank has measured since its report before."""

    seconds: float
    now: int  # microseconds of its host's clock
    samples: tuple[Sampled, ...] = ()
    arrivals: tuple[Arrival, ...] = ()
    num_compiles: int = 0
    num_collections: int = 0
    collecting_seconds: float = 0.0
    collecting_place: CodePlace | None = None  # the line that has made the objects
    cpu_seconds: float = 0.0  # of the main thread
    run_delay_seconds: float = 0.0  # in which it could run, and got no core
    stopped_seconds: float = 0.0  # in which nothing of its process ran
    memory_bytes: int = 0  # allocated on the device; on CPU resident
    reserved_bytes: int | None = None
    device_busy: float | None = None  # which part of the time the device ran anything; None if not known
    num_retries: int | None = None  # how often torch has freed its cache of device memory to find room
    grown: tuple[Grown, ...] = ()
    updates: tuple[Updates, ...] = ()
    sharded_updates: tuple[ShardedUpdates, ...] = ()
    steps: tuple[tuple[float, int], ...] = field(default=())

    @property
    def kept_seconds(self) -> float:
        """In which it was kept from running: by other programs, by a limit, or by a signal."""
        return max(self.run_delay_seconds, self.stopped_seconds)


def read_report(answer: Mapping[str, Any]) -> RankReport | None:
    """Return the report in a rank's answer; None if the answer is none. Never raises for what a rank sends."""
    try:
        memory = answer["memory"]
        allocated = memory.get("allocated_bytes")
        return RankReport(
            seconds=_seconds(answer["seconds"]),
            now=_whole(answer["now"]),
            samples=tuple(_sampled(row) for row in answer["samples"][:MAX_ROWS]),
            arrivals=tuple(parse(Arrival, row) for row in answer["arrivals"][-MAX_ARRIVALS:]),
            num_compiles=_whole(answer["compiles"]),
            num_collections=_whole(answer["collections"][0]),
            collecting_seconds=_seconds(answer["collections"][1]),
            collecting_place=_place(answer["collections"][2:3]),  # not in 0.2
            cpu_seconds=_seconds(answer["cpu_seconds"]),
            run_delay_seconds=_seconds(answer["run_delay_seconds"]),
            stopped_seconds=_seconds(answer["stopped_seconds"]),
            memory_bytes=_whole(memory["resident_bytes"] if allocated is None else allocated),
            device_busy=None if answer["device"][0] is None else min(1.0, _seconds(answer["device"][0]) / 100),
            num_retries=None if answer["device"][1] is None else _whole(answer["device"][1]),
            reserved_bytes=None if allocated is None else _whole(memory["reserved_bytes"]),
            grown=tuple(parse(Grown, row) for row in answer["grown"][:MAX_GROWN]),
            updates=tuple(parse(Updates, row) for row in answer["updates"][:MAX_MODELS]),
            sharded_updates=tuple(  # not in 0.2
                parse(ShardedUpdates, row) for row in answer.get("sharded_updates", ())[:MAX_MODELS]
            ),
            steps=tuple((_seconds(at), _whole(step)) for at, step in answer["steps"][-MAX_STEPS:]),
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
        return None


def _sampled(row: Sequence[Any]) -> Sampled:
    found = parse(Sampled, list(row[:9]))  # 6 of ranks of an earlier version
    earlier = [parse(CodePlace, line) for line in (row[9] if len(row) > 9 else ())[:MAX_MAYBE]]  # None: of a library
    return found._replace(
        cpu_seconds=found.cpu_seconds / 1e6,
        times=found.times[:MAX_TIMES],
        maybe=tuple(filter(None, earlier)),
    )


def _place(rows: Sequence[Any]) -> CodePlace | None:
    return parse(CodePlace, rows[0]) if rows and rows[0] is not None else None


def _whole(value: Any) -> int:
    number = int(value)
    if abs(number) > MAX_NUMBER:
        raise ValueError("too large")
    return number


def _seconds(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number) or not 0 <= number < 1e9:
        raise ValueError("not a length of time")
    return number
