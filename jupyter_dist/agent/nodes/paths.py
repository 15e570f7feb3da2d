"""Whether the nodes of a group reach each other, as their ranks must: found by trial connections, and put in words."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jupyter_dist.protocol import accelerators
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say, say_n
from jupyter_dist.transport.frames import Header

from .link.hello import is_place, one_line
from .remote import RemoteNode

FULL_MESH = 32  # up to this many nodes, each tries all others; of more, each tries some in all distances
MAX_NAMED = 3
WAY = say(
    "Ranks connect to each other on any port: allow that between the nodes, or choose another interface with the"
    " launcher's option 'interface' or with env=%1.",
    json.dumps(accelerators.on_interface("eth1")),
)


class BrokenPath(NamedTuple):
    """A node that cannot connect to another one, or to none because its own place is not known."""

    source: int
    target: int
    where: str  # the address and interface of the target
    why: str


def interfaces_for(backend: str, env: Mapping[str, str]) -> list[str | None]:
    """Return the network interfaces that ranks use, by a group's variables; None stands for the interface of the link.

    A list, a prefix or an exclusion, as NCCL takes them, is not resolved: the interface of the link is tried then.
    """
    found: dict[str | None, None] = {}
    for name in dict.fromkeys(("gloo", backend)):  # groups on devices use gloo for tensors on the CPU
        value = env.get(accelerators.BACKENDS[name].interface_variable, "").removeprefix("=")
        found[value if value and value.isprintable() and not set(value) & set(",^:") else None] = None
    return list(found)


async def find_broken_paths(nodes: Sequence[RemoteNode], interface: str | None) -> list[BrokenPath]:
    """Have the nodes connect to each other; return each pair that failed. A node that does not answer is left out.

    Raises:
        JupyterDistError: `start_failed`, if a node does not have the interface.
    """
    asked = await asyncio.gather(*(node.ask_trial("trial_port", interface=interface) for node in nodes))
    places: dict[int, Header] = {}
    for node, answer in zip(nodes, asked, strict=True):
        if error := answer.get("failed"):
            message = say("Node %1 cannot be connected to: %2.", node.label.removeprefix("node "), one_line(error))
            raise JupyterDistError("start_failed", message, say("Choose an interface that all nodes have."))
        if is_place(answer):
            places[node.node] = answer
    targets = {node.node: [places[other] for other in _tried(node.node, sorted(places))] for node in nodes}
    found = await asyncio.gather(
        *(node.ask_trial("try_places", places=targets[node.node]) for node in nodes if targets[node.node])
    )
    trying = [node for node in nodes if targets[node.node]]
    broken: list[BrokenPath] = []
    for node, answer in zip(trying, found, strict=True):
        others = _tried(node.node, sorted(places))
        broken += _failures(node.node, others, places, answer)
    return broken


def _failures(node: int, others: Sequence[int], places: Mapping[int, Header], answer: Header) -> Iterator[BrokenPath]:
    """Yield the failed trials in a node's answer, which may contain anything."""
    failed: Any = answer.get("failed")
    if not isinstance(failed, list) or len(failed) != len(others):
        return
    for other, why in zip(others, failed, strict=True):
        if why is not None:
            yield BrokenPath(node, other, _where(places[other]), one_line(why))


def _tried(node: int, others: Sequence[int]) -> list[int]:
    """Return the nodes to which a node tries to connect: all others, or those in the distances 1, 2, 4, ..."""
    if node not in others:
        return []
    number, count = others.index(node), len(others)
    if count <= FULL_MESH:
        return [other for other in others if other != node]
    distances = itertools.takewhile(lambda distance: distance < count, (1 << bit for bit in itertools.count()))
    return [others[(number + distance) % count] for distance in distances]


def describe(broken: Sequence[BrokenPath], labels: Mapping[int, str]) -> str:
    """Return sentences on pairs of nodes that do not reach each other, and what to do; an empty text if all do."""
    if not broken:
        return ""
    by_pair = {(path.source, path.target): path for path in broken}
    shown, sentences = set[tuple[int, int]](), []
    for (source, target), path in by_pair.items():
        if (target, source) in shown:
            continue
        shown.add((source, target))
        back = by_pair.get((target, source))
        ends = [labels[node].removeprefix("node ") for node in (source, target)]
        text = say("Node %1 cannot connect to node %2 at %3 (%4).", *ends, path.where, path.why)
        also = back and say("Nor can node %1 to node %2 at %3 (%4).", *ends[::-1], back.where, back.why)
        sentences.append(join(text, also))
    more = len(sentences) - MAX_NAMED
    and_more = say_n("Nor can %1 more pair of nodes.", "Nor can %1 more pairs of nodes.", more) if more > 0 else ""
    return join(*sentences[:MAX_NAMED], and_more, WAY)


def _where(place: Header) -> str:
    interface = place.get("interface")
    return say("%1, interface %2", place["address"], interface) if interface else str(place["address"])
