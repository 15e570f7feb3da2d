"""The CPUs and the memory that an engine has given to a node, compared with the needs of its ranks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from jupyter_dist.protocol.models.sentences import join, say, say_n

RANK_BYTES = 300 << 20  # of a rank with torch that has run nothing
MIB = 1 << 20
NUMA_NODES = Path("/sys/devices/system/node")


def given_cpus(environment: Mapping[str, str]) -> int:
    """Return how many CPUs this process may use, or fewer if Slurm has given its task fewer."""
    own = len(os.sched_getaffinity(0))
    given = environment.get("SLURM_CPUS_PER_TASK") or environment.get("SLURM_CPUS_ON_NODE", "")
    return min(own, int(given)) if given.isdigit() and int(given) else own


def share_of_cpus(
    binding: str, local_rank: int, num_ranks: int, given: Sequence[int], numa_nodes: Sequence[Sequence[int]]
) -> list[int]:
    """Return the CPUs that a rank may use; none: all that are given.

    Args:
        binding: `none`, `rank` (each rank has an equal share) or `numa` (the CPUs of one NUMA node, which ranks share).
        local_rank: the number of the rank on its node.
        num_ranks: how many ranks the node has.
        given: the CPUs that the node's ranks may use together.
        numa_nodes: the CPUs of each NUMA node of the machine.
    """
    if binding == "numa":
        usable = [near for cpus in numa_nodes if (near := sorted(set(cpus).intersection(given)))]
        return list(usable[local_rank * len(usable) // num_ranks]) if len(usable) > 1 else []
    if binding != "rank" or len(given) < num_ranks:  # several ranks on one CPU would wait for each other
        return []
    ordered = [cpu for cpus in numa_nodes for cpu in sorted(set(cpus).intersection(given))] or sorted(given)
    return ordered[local_rank * len(ordered) // num_ranks : (local_rank + 1) * len(ordered) // num_ranks]


def numa_nodes() -> list[list[int]]:
    """Return the CPUs of each NUMA node of this machine; none if the kernel does not list them."""
    found = []
    for path in sorted(NUMA_NODES.glob("node[0-9]*/cpulist")):
        try:
            ranges = [part.split("-") for part in path.read_text().strip().split(",") if part]
            found.append([cpu for each in ranges for cpu in range(int(each[0]), int(each[-1]) + 1)])
        except (OSError, ValueError):
            return []
    return found


def given_bytes(environment: Mapping[str, str]) -> int | None:
    """Return the memory that Slurm has given to the job on this node; None if that is all, or not known."""
    of_node, of_cpu, cpus = (
        int(given) if (given := environment.get(name, "")).isdigit() else 0
        for name in ("SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE")
    )
    return (of_node or of_cpu * cpus) * MIB or None


def shortage(given: Mapping[str, int | None], num_ranks: int) -> str:
    """Return the shortage of a node as the part of a sentence; an empty text if its ranks have enough.

    Args:
        given: `cpus`, the `machine_cpus` of which they are a part, and `given_bytes`.
        num_ranks: how many ranks the node has.
    """
    cpus, of_machine, size = given.get("cpus"), given.get("machine_cpus"), given.get("given_bytes")
    found = []
    if cpus and cpus < min(num_ranks, of_machine or cpus):
        found.append(say("%1 of its machine's %2 CPUs", cpus, of_machine))
    if size and size < num_ranks * RANK_BYTES:
        found.append(say("%1 MiB of memory", size // MIB))
    return say_n("%2 for %1 rank", "%2 for %1 ranks", num_ranks, join(*found, by=", ")) if found else ""
