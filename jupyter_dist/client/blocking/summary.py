"""Formats the ranks and nodes of a large group as a screenful of text: equal ones share a line. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from jupyter_dist.client.answers.infos import RankMemoryInfo
from jupyter_dist.client.bundles.bundle import rank_label
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.ranks import RankSet

GIB = 1 << 30
MAX_RANKS = 16  # with more, ranks that are alike share a line
MAX_LINES = 8  # of ranks, and of nodes

T = TypeVar("T")


def rank_lines(ranks: Sequence[models.RankModel], memory: Mapping[int, RankMemoryInfo]) -> list[str]:
    """Return a line for all ranks of one state, with the range of their memory."""
    alike = _by(ranks, lambda rank: (rank["state"], rank["device"].partition(":")[0], _message(rank)))
    return _limited(
        (
            f"  {rank_label(str(RankSet(rank['rank'] for rank in own)))}: {state}, on {device}"
            f"{_used([memory[rank['rank']] for rank in own if rank['rank'] in memory])}{f': {text}' if text else ''}"
            for (state, device, text), own in alike
        ),
        len(alike),
        "ranks",
    )


def node_lines(nodes: Sequence[models.NodeModel]) -> list[str]:
    """Return a line for all nodes of one state and with the same devices; hosts are named where they are few."""
    alike = _by(nodes, lambda node: (node["state"], node["message"] or "", devices_text(node.get("devices") or ())))
    return _limited((_nodes_line(own, *shared) for shared, own in alike), len(alike), "nodes")


def devices_text(devices: Iterable[models.NodeDevice]) -> str:
    """Return the devices of a node, counted: `, 8 x NVIDIA H100 (80 GiB)`."""
    counts = Counter(
        f"{device['name']} ({device['memory_bytes'] / GIB:.0f} GiB)" if device["memory_bytes"] else device["name"]
        for device in devices
    )
    return "".join(f", {f'{count} x ' if count > 1 else ''}{text}" for text, count in counts.items())


def _nodes_line(own: Sequence[models.NodeModel], state: str, message: str, devices: str) -> str:
    numbers = [node["node"] for node in own]
    hosts = [node["host"] for node in own if node["host"]]
    where = f" {', '.join(hosts)}" if 0 < len(hosts) <= 3 else f" {hosts[0]} ... {hosts[-1]}" if hosts else ""
    word = "Node" if len(own) == 1 else "Nodes"
    each = " each" if devices and len(own) > 1 else ""
    return f"{word} {RankSet(numbers)}:{where} {state}{devices}{each}. {message}".rstrip()


def _message(rank: models.RankModel) -> str:
    return rank["message"] or (rank["exit"]["reason"] if rank["exit"] else None) or ""


def _used(memory: Sequence[RankMemoryInfo]) -> str:
    allocated = [entry.allocated_bytes for entry in memory if entry.allocated_bytes is not None]
    resident = [entry.resident_bytes for entry in memory]
    return _range(allocated, "allocated") + _range(resident, "of host memory")


def _range(sizes: Sequence[int], what: str) -> str:
    if not sizes:
        return ""
    low, high = f"{min(sizes) / GIB:.2f}", f"{max(sizes) / GIB:.2f}"
    between = low if low == high else f"{low} to {high}"
    return f", {between} GiB {what}{f' each, {sum(sizes) / GIB:.1f} in all' if len(sizes) > 1 else ''}"


def _by(things: Iterable[T], key: Callable[[T], tuple[str, str, str]]) -> list[tuple[tuple[str, str, str], list[T]]]:
    """Return groups of equal ranks or nodes, rare ones first, because they are exceptions."""
    found: dict[tuple[str, str, str], list[T]] = {}
    for thing in things:
        found.setdefault(key(thing), []).append(thing)
    return sorted(found.items(), key=lambda item: len(item[1]))


def _limited(lines: Iterator[str], count: int, what: str) -> list[str]:
    found = list(lines)
    if count <= MAX_LINES:
        return found
    rest = f"  ... and {count - MAX_LINES + 1} more kinds of {what}: --json lists each."
    return [*found[: MAX_LINES - 2], rest, found[-1]]
