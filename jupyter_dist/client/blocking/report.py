"""Formats a group and its ranks as text, for status commands and magics."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping

from jupyter_dist.client.answers.infos import MemorySampleInfo, RankMemoryInfo, RankStackInfo
from jupyter_dist.client.bundles.bundle import rank_label
from jupyter_dist.protocol.errors import TimedOutError
from jupyter_dist.protocol.models import machine, models
from jupyter_dist.protocol.states import GONE_GROUP_STATES, UNREACHABLE_GROUP_STATES

from .group import Client, Group
from .summary import MAX_RANKS, devices_text, node_lines, rank_lines

GIB = 1 << 30
MIB = 1 << 20
STACK_WORDS = {"waits": "waits", "runs": "runs", "idle": "idle", "dead": "dead", "unknown": "does not answer"}


def status_text(
    group: models.GroupModel, sample: MemorySampleInfo | None, mode: str, devices: Iterable[machine.Device] = ()
) -> str:
    """Return a line per rank: state, process, device, memory; name and size of the device from `GET devices`.

    Ranks and nodes of a large group share a line where they are alike.
    """
    memory = {entry.rank: entry for entry in sample.ranks} if sample else {}
    by_index = {device["index"]: device for device in devices}
    lines = [f"Group '{group['name']}': {group['state']}, {group['world_size']} ranks, {group['backend']}"]
    if len(group["ranks"]) > MAX_RANKS:
        lines += rank_lines(group["ranks"], memory)
    else:
        lines += [
            _rank_line(rank, memory.get(rank["rank"]), *_device(group, rank, by_index)) for rank in group["ranks"]
        ]
    lines += _node_lines(group)
    error = group["error"]["message"] if group["error"] else None
    lines += [text for text in (group["note"], error, mode) if text]
    return "\n".join(lines)


def _device(
    group: models.GroupModel, rank: models.RankModel, by_index: Mapping[int, machine.Device]
) -> tuple[str, machine.Device | None]:
    index = gpu_id(group, rank)
    device = by_index.get(index) if index is not None and not group.get("nodes") else None
    return _place(group, rank, device["name"] if device else None), device


def _node_lines(group: models.GroupModel) -> Iterator[str]:
    nodes = group.get("nodes") or []
    if len(nodes) > MAX_RANKS:
        yield from node_lines(nodes)
        nodes = []
    for node in nodes:
        where = f" {node['host']} ({node['interface'] or node['address']})" if node["host"] else ""
        devices = devices_text(node.get("devices") or ())
        text = f"Node {node['node']}:{where} {node['state']}, ranks {node['ranks']}{devices}. {node['message'] or ''}"
        yield text.rstrip()
    if allocation := group.get("allocation"):
        yield " ".join(filter(None, (f"{allocation['launcher']}:", allocation["text"], allocation["warning"])))
    if group.get("join"):
        yield f"Run this on each machine that is missing:\n  {group['join']}"


def replaced_text(group: models.GroupModel) -> str:
    """Return the names that replaced ranks were given, and a line for each that is missing."""
    replaced = group.get("replaced")
    if not replaced:
        return ""
    source = f"of the save '{replaced['save']}'" if replaced["save"] else "copied from the other ranks"
    return "\n".join([f"{len(replaced['names'])} names {source}.", *replaced["again"]])


def stacks_text(stacks: Iterable[RankStackInfo]) -> str:
    """Return the states of ranks with their current lines, innermost last; ranks with equal stacks once."""
    return "\n".join(line for stack in stacks for line in _stack_lines(stack))


def _stack_lines(stack: RankStackInfo) -> Iterator[str]:
    does = f"waits in {stack.call}" if stack.call else STACK_WORDS[stack.state]
    yield f"{rank_label(stack.ranks)}: {does}"
    for frame in stack.frames:
        yield f"  {frame.file if frame.is_library else frame.name}:{frame.line} in {frame.function}"
        if frame.code:
            yield f"    {frame.code}"


def presets_text(presets: Iterable[machine.Preset]) -> str:
    """Return the presets, each with its options."""
    lines = []
    for preset in presets:
        about = ": ".join(filter(None, (preset["label"], preset["description"])))
        lines.append(f"{preset['name']}: {preset['problem'] or about}")
        lines += [f"  {name}: {json.dumps(value)}" for name, value in preset["options"].items()]
    return "\n".join(lines) or "There are no presets."


def ending_text(group: models.GroupModel, *, is_private: bool) -> str:
    """Return a sentence about what ends the group besides a request, and when."""
    ends_with = group.get("ends_with")
    if group["state"] in GONE_GROUP_STATES:
        return group["error"]["message"] if group["error"] else "It has ended."
    if not ends_with:
        if not is_private:
            return "It runs until it is shut down."
        return f"It ends after {duration(group['lease_seconds'] or 0)} without a Jupyter server."
    grace = duration(ends_with["grace_seconds"])
    if ends_with["at"] is not None:
        at = time.strftime("%H:%M:%S", time.localtime(ends_with["at"]))
        return f"The process that it belongs to has ended: it ends at {at}, unless its notebook attaches to it."
    pids = ", ".join(map(str, ends_with["owners"]))
    which = f"process {pids}" if len(ends_with["owners"]) == 1 else f"the last of the processes {pids}"
    return f"It ends {f'{grace} after' if ends_with['grace_seconds'] else 'with'} {which}."


def duration(seconds: float) -> str:
    """Return a time as `45 s`, `30 min` or `1.5 h`."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size and seconds % (size / 2) == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def sample_if_any(group: Group) -> MemorySampleInfo | None:
    """Return a new sample of the group's memory; None if its agent does not answer."""
    if group.model["state"] in GONE_GROUP_STATES | UNREACHABLE_GROUP_STATES:
        return None
    try:
        return group.memory()
    except TimedOutError:
        return None


def devices_line(group: models.GroupModel) -> str:
    """Return which rank has which device."""
    return "Devices: " + ", ".join(f"rank {rank['rank']} {_place(group, rank)}" for rank in group["ranks"])


def gpu_id(group: models.GroupModel, rank: models.RankModel) -> int | None:
    """Return the index of the rank's device, on nodes among the devices of its node; None on CPU."""
    return int(group["devices"][rank["rank"] % len(group["devices"])]) if group["devices"] else None


def debug_text(client: Client, groups: Iterable[Group], mode: str) -> str:
    """Return a description of the connection and all groups."""
    kind = "private, shared by all of your programs without a Jupyter server" if client.is_private else "running"
    lines = [f"Server: {client.url} ({kind})", mode]
    for group in groups:
        lines += ["", status_text(group.model, None, ""), f"  id {group.id}, in {group.model['cwd']}"]
    return "\n".join(lines)


def _rank_line(rank: models.RankModel, memory: RankMemoryInfo | None, place: str, device: machine.Device | None) -> str:
    parts = [f"  rank {rank['rank']}: {rank['state']}", f"pid {rank['pid']}", place]
    if memory is not None and memory.allocated_bytes is not None:
        allocated, total = memory.allocated_bytes, device["memory_total_bytes"] if device else None
        of = f" of {total / GIB:.2f}" if total else ""
        share = f" ({100 * allocated / total:.0f}%)" if total else ""
        parts.append(
            f"{allocated / GIB:.2f}{of} GiB allocated{share}, {(memory.reserved_bytes or 0) / GIB:.2f} reserved"
        )
    if memory is not None:
        parts.append(f"{memory.resident_bytes / GIB:.2f} GiB of host memory")
    what = rank["message"] or (rank["exit"]["reason"] if rank["exit"] else None)
    return ", ".join(parts) + (f": {what}" if what else "")


def _place(group: models.GroupModel, rank: models.RankModel, name: str | None = None) -> str:
    gpu = gpu_id(group, rank) if not group.get("nodes") else None  # else it counts among the devices of the node
    known = "" if gpu is None else f" (GPU {gpu}{f', {name}' if name else ''})"
    return f"on {rank['device']}{known}"
