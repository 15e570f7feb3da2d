"""The timeline of a rank: when it computed, and its collectives. From the events of a trace; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from jupyter_dist.parts.profile.models import MAX_COLLECTIVES, UNKNOWN
from jupyter_dist.protocol.accelerators import BACKENDS

Span = tuple[float, float]  # begin and end, in microseconds

# Kineto's categories, which are the same for all vendors.
_ON_DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_ON_HOST = frozenset({"cpu_op", "user_annotation"})
_PREFIXES = tuple(f"{name}:" for name in BACKENDS)
_NOT_COMPUTING = ("c10d::", "record_param_comms", *_PREFIXES)
_SEPARATORS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class CollectiveSpan(NamedTuple):
    """A collective of this rank: from its arrival to its end."""

    name: str
    group: str  # torch's name of its process group; UNKNOWN if no event has it
    begin: float
    end: float


class Timeline:
    """Collects the spans of computation and the collectives from the events of one rank."""

    def __init__(self) -> None:
        self._host: list[Span] = []
        self._device: list[Span] = []
        self._host_collectives: list[CollectiveSpan] = []
        self._device_collectives: list[CollectiveSpan] = []

    def add(self, event: dict[str, Any]) -> None:
        """Add an event."""
        begin, length, name = event.get("ts"), event.get("dur"), event.get("name")
        if event.get("ph") != "X" or not isinstance(begin, (int, float)) or not isinstance(length, (int, float)):
            return
        name, category = str(name), event.get("cat")
        if category in _ON_DEVICE:
            self._add_device(name, begin, begin + length, event.get("args") or {})
        elif category in _ON_HOST and name.startswith(_PREFIXES):
            self._host_collectives.append(CollectiveSpan(name, _group(event.get("args") or {}), begin, begin + length))
        elif category == "cpu_op" and not name.startswith(_NOT_COMPUTING):
            self._host.append((begin, begin + length))

    def _add_device(self, name: str, begin: float, end: float, args: dict[str, Any]) -> None:
        backend = next((known for known in BACKENDS if known in name.lower()), None)
        if backend is None:
            self._device.append((begin, end))
        else:
            self._device_collectives.append(CollectiveSpan(_kernel_name(backend, name), _group(args), begin, end))

    def summary(self, began: float, ended: float, recorded: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
        """Return a summary that the server compares between ranks.

        Args:
            began: when the cell began, in microseconds, as the events have it.
            ended: when it ended.
            recorded: name and process group of the last collectives, from torch's flight recorder.

        Returns: `seconds`; `computing`, in seconds; `collectives`: name, process group, arrival, end, and how long
            it computed nothing meanwhile, in microseconds after `began`; `num_collectives`.
        """
        computing = _union(self._device or self._host, began, ended)
        # The host waits for a collective while its device does.
        of_device = {found.name.partition(":")[0] for found in self._device_collectives}
        host = (found for found in self._host_collectives if found.name.partition(":")[0] not in of_device)
        collectives = sorted([*self._device_collectives, *host], key=lambda found: (found.begin, found.end))
        groups = _groups(collectives, recorded)
        exposed = _exposed(collectives, computing, began, ended)
        rows = [
            [found.name, group, round(found.begin - began, 3), round(found.end - began, 3), round(free, 3)]
            for found, group, free in zip(collectives, groups, exposed, strict=True)
        ]
        return {
            "seconds": round((ended - began) / 1e6, 6),
            "computing": round(sum(end - begin for begin, end in computing) / 1e6, 6),
            "collectives": rows[:MAX_COLLECTIVES],
            "in_collectives": round(sum(exposed) / 1e6, 6),
            "num_collectives": len(rows),
        }


def _group(args: dict[str, Any]) -> str:
    return str(args.get("Process Group Name", UNKNOWN))[:80]


def _groups(collectives: list[CollectiveSpan], recorded: Sequence[tuple[str, str]]) -> list[str]:
    """Return the process group of each collective: from its event, or from the recorder, which has the last ones."""
    own = [found.group for found in collectives]
    groups = {group for _, group in recorded}
    if UNKNOWN not in own:
        return own
    if [found.name for found in collectives] == [name for name, _ in recorded]:
        return [group for _, group in recorded]
    return [groups.pop()] * len(own) if len(groups) == 1 else own


def _kernel_name(backend: str, name: str) -> str:
    """Return the collective of a kernel: nccl:all_reduce for ncclDevKernel_AllReduce_Sum_f32_RING_LL."""
    words = name.partition("_")[2].partition("_")[0]
    return f"{backend}:{_SEPARATORS.sub('_', words).lower() or 'collective'}"


def _union(spans: Iterable[Span], least: float, most: float) -> list[Span]:
    """Return the union of the spans as separate spans, in order, within these limits."""
    joined: list[Span] = []
    for span in sorted(spans):
        begin, end = max(span[0], least), min(span[1], most)
        if end <= begin:
            continue
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return joined


def _exposed(collectives: list[CollectiveSpan], computing: list[Span], began: float, ended: float) -> list[float]:
    """Return how long each collective took in which nothing was computed, and no earlier collective ran."""
    exposed, reached, first = [], began, 0
    for found in collectives:
        begin, end = max(found.begin, reached), min(found.end, ended)
        while first < len(computing) and computing[first][1] <= begin:
            first += 1
        covered, index = 0.0, first
        while index < len(computing) and computing[index][0] < end:
            covered += max(0.0, min(computing[index][1], end) - max(computing[index][0], begin))
            index += 1
        exposed.append(max(0.0, end - begin - covered))
        reached = max(reached, end)
    return exposed
