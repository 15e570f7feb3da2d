"""The CPUs and the memory that an engine has given to a node, compared with the needs of its ranks."""

from __future__ import annotations

import os
from collections.abc import Mapping

RANK_BYTES = 300 << 20  # of a rank with torch that has run nothing
MIB = 1 << 20


def given_cpus(environment: Mapping[str, str]) -> int:
    """Return how many CPUs this process may use, or fewer if Slurm has given its task fewer."""
    own = len(os.sched_getaffinity(0))
    given = environment.get("SLURM_CPUS_PER_TASK") or environment.get("SLURM_CPUS_ON_NODE", "")
    return min(own, int(given)) if given.isdigit() and int(given) else own


def given_bytes(environment: Mapping[str, str]) -> int | None:
    """Return the memory that Slurm has given to the job on this node; None if that is all, or not known."""
    of_node, of_cpu, cpus = (
        int(given) if (given := environment.get(name, "")).isdigit() else 0
        for name in ("SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE")
    )
    return (of_node or of_cpu * cpus) * MIB or None


def shortage(given: Mapping[str, int | None], num_ranks: int) -> str:
    """Return the shortage of a node as the rest of a sentence; an empty text if its ranks have enough.

    Args:
        given: `cpus`, the `machine_cpus` of which they are a part, and `given_bytes`.
        num_ranks: how many ranks the node has.
    """
    cpus, of_machine, size = given.get("cpus"), given.get("machine_cpus"), given.get("given_bytes")
    found = []
    if cpus and cpus < min(num_ranks, of_machine or cpus):
        found.append(f"{cpus} of its machine's {of_machine} CPUs")
    if size and size < num_ranks * RANK_BYTES:
        found.append(f"{size // MIB} MiB of memory")
    ranks = "1 rank" if num_ranks == 1 else f"{num_ranks} ranks"
    return f"has {' and '.join(found)} for {ranks}" if found else ""
