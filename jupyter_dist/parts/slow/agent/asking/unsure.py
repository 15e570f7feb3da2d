"""Finds the line of samples that a rank cannot place itself: of several lines that hold the GIL, any took the time.

CPython lets the rank's sampling thread look after a call in C, whether the call was long or a bytecode before it. So
the agent looks from outside, at random moments: C code writes the stack of the moment at a signal.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.protocol.wire.places import is_library
from jupyter_dist.transport.rows import CodePlace

from .reports import RankReport, Sampled

RUN = "run"  # as in observed.py, which imports this folder
LEAST_UNSURE = 0.1  # of the samples of a rank: less is not asked for
NUM_LOOKS = 8
BETWEEN_SECONDS = (0.01, 0.06)
LEAST_SEEN = 6  # moments


class _LineSeen(NamedTuple):
    file: str
    line: int


_ELSEWHERE = _LineSeen("", 0)  # it waits, or is in a function that the line has called: the rank's samples show that


class UnsureLines:
    """The lines at which ranks were seen from outside, in the last looks."""

    def __init__(self) -> None:
        self._seen: dict[int, Counter[_LineSeen]] = {}

    async def settle(self, rank: RankProcess, report: RankReport) -> RankReport:
        """Return the report with each sample at its line, or at none where that is not known."""
        unsure = sum(sampled.number for sampled in report.samples if sampled.maybe)
        if not unsure:
            return report
        seen = self._seen.setdefault(rank.rank, Counter())
        if unsure >= LEAST_UNSURE * sum(sampled.number for sampled in report.samples):
            for place in seen:
                seen[place] //= 2  # what was seen before counts less
            await _look(rank, seen)
        return replace(report, samples=_placed(report.samples, seen))


async def _look(rank: RankProcess, seen: Counter[_LineSeen]) -> None:
    for _ in range(NUM_LOOKS):
        await asyncio.sleep(random.uniform(*BETWEEN_SECONDS))  # noqa: S311
        frames = await rank.line_if_running()
        own = frames[-1] if frames and not is_library(frames[-1]["file"]) else None
        seen[_LineSeen(own["file"], own["line"]) if own is not None else _ELSEWHERE] += 1


def _placed(samples: Sequence[Sampled], seen: Counter[_LineSeen]) -> tuple[Sampled, ...]:
    """Move samples to the lines that were seen so often: no more than these have of the time."""
    found = [sampled._replace(maybe=()) for sampled in samples if not sampled.maybe]
    if seen.total() < LEAST_SEEN:
        return (*found, *(sampled._replace(place=None, maybe=()) for sampled in samples if sampled.maybe))
    total = sum(sampled.number for sampled in samples)
    left = {place: number / seen.total() * total for place, number in seen.items()}
    for sampled in found:
        if sampled.place is not None and sampled.activity == RUN:
            left[_of(sampled.place)] = left.get(_of(sampled.place), 0.0) - sampled.number
    for sampled in (sampled for sampled in samples if sampled.maybe):
        best = max(sampled.maybe, key=lambda place: left.get(_of(place), 0.0))
        number = min(sampled.number, max(0, round(left.get(_of(best), 0.0))))
        left[_of(best)] = left.get(_of(best), 0.0) - number
        stays = sampled.number - number
        moved = _at_line(sampled, best)._replace(number=number, times=sampled.times[:number])
        kept = sampled._replace(number=stays, times=sampled.times[number:], maybe=())
        found += [one for one in (moved, kept) if one.number]
    return tuple(found)


def _at_line(sampled: Sampled, place: CodePlace) -> Sampled:
    return sampled._replace(activity=RUN, place=place, is_blocked=False, runs="python", maybe=())


def _of(place: CodePlace) -> _LineSeen:
    return _LineSeen(place.file, place.line)
