"""Formats a group and its ranks as text, for status commands and magics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .group import Client, Group

GIB = 1 << 30


def status_text(
    group: dict[str, Any], sample: dict[str, Any] | None, mode: str, devices: Iterable[dict[str, Any]] = ()
) -> str:
    """Return a line per rank: state, process, device, memory; name and size of the device from `GET devices`."""
    memory = {entry["rank"]: entry for entry in sample["ranks"]} if sample else {}
    by_index = {device["index"]: device for device in devices}
    lines = [f"Group '{group['name']}': {group['state']}, {group['world_size']} ranks, {group['backend']}"]
    for rank in group["ranks"]:
        device = by_index.get(gpu_id(group, rank), {})
        lines.append(_rank_line(rank, memory.get(rank["rank"]), _place(group, rank, device.get("name")), device))
    lines += [text for text in (group["note"], (group["error"] or {}).get("message"), mode) if text]
    return "\n".join(lines)


def devices_line(group: dict[str, Any]) -> str:
    """Return which rank has which device."""
    return "Devices: " + ", ".join(f"rank {rank['rank']} {_place(group, rank)}" for rank in group["ranks"])


def gpu_id(group: dict[str, Any], rank: dict[str, Any]) -> int | None:
    """Return the machine's index of the rank's device; None on CPU."""
    return int(group["devices"][rank["local_rank"]]) if group["devices"] else None


def debug_text(client: Client, groups: Iterable[Group], mode: str) -> str:
    """Return a description of the connection and all groups."""
    kind = "this kernel's own" if client.is_private else "running"
    lines = [f"Server: {client.url} ({kind})", mode]
    for group in groups:
        lines += ["", status_text(group.model, None, ""), f"  id {group.id}, in {group.model['cwd']}"]
    return "\n".join(lines)


def _rank_line(rank: dict[str, Any], memory: dict[str, Any] | None, place: str, device: dict[str, Any]) -> str:
    parts = [f"  rank {rank['rank']}: {rank['state']}", f"pid {rank['pid']}", place]
    if memory is not None and memory["allocated_bytes"] is not None:
        allocated, total = memory["allocated_bytes"], device.get("memory_total_bytes")
        of = f" of {total / GIB:.2f}" if total else ""
        share = f" ({100 * allocated / total:.0f}%)" if total else ""
        parts.append(f"{allocated / GIB:.2f}{of} GiB allocated{share}, {memory['reserved_bytes'] / GIB:.2f} reserved")
    if memory is not None and memory["resident_bytes"] is not None:
        parts.append(f"{memory['resident_bytes'] / GIB:.2f} GiB of host memory")
    what = rank["message"] or (rank["exit"] or {}).get("reason")
    return ", ".join(parts) + (f": {what}" if what else "")


def _place(group: dict[str, Any], rank: dict[str, Any], name: str | None = None) -> str:
    gpu = gpu_id(group, rank)
    known = "" if gpu is None else f" (GPU {gpu}{f', {name}' if name else ''})"
    return f"on {rank['device']}{known}"
