"""A group and its ranks as lines of text: what status commands and magics print."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .group import Client, Group

GIB = 1 << 30


def status_text(group: dict[str, Any], sample: dict[str, Any] | None, mode: str) -> str:
    """A line per rank: state, process, device, memory."""
    memory = {entry["rank"]: entry for entry in sample["ranks"]} if sample else {}
    lines = [f"Group '{group['name']}': {group['state']}, {group['world_size']} ranks, {group['backend']}"]
    lines += [_rank_line(rank, memory.get(rank["rank"])) for rank in group["ranks"]]
    lines += [text for text in (group["note"], (group["error"] or {}).get("message"), mode) if text]
    return "\n".join(lines)


def devices_line(group: dict[str, Any]) -> str:
    """Which rank has which device."""
    return "Devices: " + ", ".join(f"rank {rank['rank']} {_device(rank)}" for rank in group["ranks"])


def debug_text(client: Client, groups: Iterable[Group], mode: str) -> str:
    """The connection and all groups."""
    kind = "this kernel's own" if client.is_private else "running"
    lines = [f"Server: {client.url} ({kind})", mode]
    for group in groups:
        lines += ["", status_text(group.model, None, ""), f"  id {group.id}, in {group.model['cwd']}"]
    return "\n".join(lines)


def _rank_line(rank: dict[str, Any], memory: dict[str, Any] | None) -> str:
    parts = [f"  rank {rank['rank']}: {rank['state']}", f"pid {rank['pid']}", _device(rank)]
    if memory is not None and memory["allocated_bytes"] is not None:
        parts.append(
            f"{memory['allocated_bytes'] / GIB:.2f} GiB allocated, {memory['reserved_bytes'] / GIB:.2f} reserved"
        )
    if memory is not None and memory["resident_bytes"] is not None:
        parts.append(f"{memory['resident_bytes'] / GIB:.2f} GiB of main memory")
    what = rank["message"] or (rank["exit"] or {}).get("reason")
    return ", ".join(parts) + (f": {what}" if what else "")


def _device(rank: dict[str, Any]) -> str:
    return f"on {rank['device']}"
