"""Sentences for what the driver has written: it runs without this package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jupyter_dist.protocol.models.sentences import join, say, say_n
from jupyter_dist.server.launchers.allocation import RELEASED

MAX_KINDS = 8  # of nodes that differ, in a sentence
Amounts = Mapping[str, float]


def why(found: Sequence[Any]) -> str:
    """Return the sentence of a name and its values. Raises LookupError, TypeError, ValueError if they are damaged."""
    name, *values = found
    return _WORDS[str(name)](*values)


def _waits(bundles: Sequence[Amounts], nodes: Sequence[Amounts], free: Amounts) -> str:
    """Return why the nodes are not reserved yet: the request, compared with the free resources of the cluster."""
    kinds = _kinds(bundles)
    wanted = [_nodes(count, bundle) for bundle, count in kinds[:MAX_KINDS]]
    if smaller := sum(count for _, count in kinds[MAX_KINDS:]):
        wanted.append(say_n("%1 node with less", "%1 nodes with less", smaller))
    needs, needed = say("It needs %1.", join(*wanted, by=", ")), 0
    for bundle, count in kinds:
        needed += count  # nodes that are larger count for a smaller bundle, too
        able = sum(all(node.get(name, 0) >= amount for name, amount in bundle.items()) for node in nodes)
        if able < needed:
            such = say("Of the %1 nodes of the cluster, %2 can give %3.", len(nodes), able, _amounts(bundle))
            return join(needs, such, say("It starts when more nodes join."))
    total = {name: sum(node.get(name, 0) for node in nodes) for name in kinds[0][0]}
    left = ", ".join(f"{free.get(name, 0):g}/{total[name]:g} {name}" for name in total)
    return join(needs, say("It waits until others release them; free are %1.", left))


def _kinds(bundles: Sequence[Amounts]) -> list[tuple[Amounts, int]]:
    """Return each different bundle and how many nodes need it, the largest first: bundles grow in all amounts alike."""
    counts = Counter(tuple(bundle.items()) for bundle in bundles)
    return [(dict(kind), counts[kind]) for kind in sorted(counts, key=lambda kind: [-amount for _, amount in kind])]


def _nodes(count: int, bundle: Amounts) -> str:
    return say_n("%1 node with %2", "%1 nodes with %2 each", count, _amounts(bundle))


def _amounts(bundle: Amounts) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in bundle.items())


def _silent(hosts: str, head: str) -> str:
    where = [say("Ray cannot reach these nodes: %1.", hosts)] if hosts else []
    where += [say("Ray cannot reach the head of the cluster at %1.", head)] if head else []
    return join(*where, say("Nodes that it has started may keep running."))


_WORDS: Mapping[str, Callable[..., str]] = {
    "begins": lambda: say("Ray is about to look for nodes."),
    "waits": _waits,
    "released": lambda: RELEASED,
    "silent": _silent,
    "no_cluster": lambda address: say("There is no Ray cluster at %1: nothing answers there.", address),
    "unusable": lambda line: say("Ray cannot be used: %1", line),
    "no_ray": lambda python, line: say("%1 has no Ray that can be imported: %2.", python, line),
    "failed": lambda line: say("Ray failed: %1", line),
    "free": lambda version, at, count, free: say("Ray %1 at %2, nodes: %3, free: %4.", version, at, count, free),
}
