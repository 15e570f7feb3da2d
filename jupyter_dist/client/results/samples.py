"""The memory and processor of ranks in the last hour, as `group.samples()` returns them, and their text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from jupyter_dist.client.answers.infos import RankSamplesInfo
from jupyter_dist.client.answers.texts import format_bytes
from jupyter_dist.protocol.models import machine

_COLUMNS = ("resident_bytes", "allocated_bytes", "reserved_bytes", "peak_bytes", "device_used_bytes", "cpu_percent")


class SampleSeries:
    """The samples of a group; `model` has the answers of the API as one (docs/api.md, PastSamples).

    Attributes:
        times: seconds since the epoch.
    """

    def __init__(self, model: machine.PastSamples) -> None:
        self.model = model
        self.times = model["times"]
        self._ranks = {entry["rank"]: entry for entry in model["ranks"]}

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self) -> Iterator[int]:
        return iter(self._ranks)

    def __getitem__(self, rank: int) -> RankSamplesInfo:
        return RankSamplesInfo(self._ranks[rank])

    def __repr__(self) -> str:
        if not self.times:
            return "No samples: they are taken while a page shows the memory of ranks."
        minutes = (self.times[-1] - self.times[0]) / 60
        gaps = sum(gap["end"] - gap["begin"] for gap in self.model["gaps"]) / 60
        head = f"{len(self)} samples in {minutes:.1f} minutes" + (f", {gaps:.1f} of them without" if gaps else "")
        return "\n".join([head, *(_line(entry) for entry in self._ranks.values())])


def joined(pages: list[machine.PastSamples]) -> machine.PastSamples:
    """Return all pages as one; a rank that a page lacks has null there."""
    ranks = sorted({entry["rank"] for page in pages for entry in page["ranks"]})
    found: machine.PastSamples = {
        "times": [at for page in pages for at in page["times"]],
        "ranks": [_joined_rank(pages, rank) for rank in ranks],
        "seen": [look for page in pages for look in page["seen"]],
        "gaps": [gap for page in pages for gap in page["gaps"]],
        "devices": _joined_devices(pages),
        "more": False,
    }
    return found


def _joined_rank(pages: list[machine.PastSamples], rank: int) -> machine.RankSamples:
    columns: dict[str, Any] = {"rank": rank}
    entries = [next((one for one in page["ranks"] if one["rank"] == rank), None) for page in pages]
    for name in _COLUMNS:
        parts = [cast("dict[str, Any]", entry or {}).get(name) for entry in entries]
        known = any(part is not None for part in parts)
        filled = (
            part if part is not None else [None] * len(page["times"]) for part, page in zip(parts, pages, strict=True)
        )
        columns[name] = [value for part in filled for value in part] if known else None
    return cast("machine.RankSamples", columns)


def _joined_devices(pages: list[machine.PastSamples]) -> list[machine.DeviceSamples]:
    found: dict[tuple[str, int], machine.DeviceSamples] = {}
    for device in (device for page in pages for device in page["devices"]):
        key = device["accelerator"], device["index"]
        if key not in found:
            found[key] = device
            continue
        for name in ("times", "utilization_percent", "power_watts"):
            cast("dict[str, Any]", found[key])[name] += cast("dict[str, Any]", device)[name]
    return list(found.values())


def _line(entry: machine.RankSamples) -> str:
    memory = entry["allocated_bytes"] or entry["resident_bytes"]
    what = "allocated" if entry["allocated_bytes"] else "resident"
    bytes_ = [value for value in memory if value is not None]
    cpu = [value for value in entry["cpu_percent"] if value is not None]
    if not bytes_ or not cpu:
        return f"  rank {entry['rank']}: nothing"
    return (
        f"  rank {entry['rank']}: {what} {format_bytes(bytes_[-1])}, at most {format_bytes(max(bytes_))}; "
        f"CPU {sum(cpu) / len(cpu):.0f} % on average, at most {max(cpu):.0f} %"
    )
