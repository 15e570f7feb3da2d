"""Reads the output of squeue and sinfo. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from jupyter_dist.protocol.models.sentences import join, say

# The reason is last, because only this field may contain the separator.
QUEUE_FORMAT = "%i|%T|%e|%S|%D|%N|%j|%r"
INFO_FORMAT = "%P|%a|%D|%T|%G|%c|%m|%l"
TIME_ENV = {"SLURM_TIME_FORMAT": "%s"}  # seconds since 1970, whatever the time zone


@dataclass(frozen=True)
class Job:
    """A job as squeue lists it."""

    job_id: str
    state: str
    ends_at: float | None
    starts_at: float | None
    num_nodes: int
    hosts: str  # as Slurm writes it: n[1-2]
    name: str
    reason: str


@dataclass(frozen=True)
class Partition:
    """A partition, summed up over its kinds of nodes."""

    name: str
    is_default: bool
    is_up: bool
    nodes: int
    idle: int
    mixed: int
    gpus: int  # the most on a node
    cpus: int
    memory_mb: int
    time_limit: str


def parse_queue(text: str) -> dict[str, Job]:
    """Return the jobs by id, without lines of another format."""
    jobs = (_job(line.split("|", 7)) for line in text.splitlines() if line.count("|") >= 7)
    return {job.job_id: job for job in jobs}


def parse_info(text: str) -> list[Partition]:
    """Return the partitions of sinfo, the default one first."""
    by_name: dict[str, list[list[str]]] = {}
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) == 8:
            by_name.setdefault(fields[0], []).append(fields)
    found = [_partition(name, rows) for name, rows in by_name.items()]
    return sorted(found, key=lambda partition: (not partition.is_default, partition.name))


def describe(partitions: Iterable[Partition]) -> str:
    """Return the free nodes, as a sentence for each partition."""
    return " ".join(_described(partition) for partition in partitions)


def _job(fields: list[str]) -> Job:
    job_id, state, ends, starts, nodes, hosts, name, reason = fields
    return Job(job_id, state, _time(ends), _time(starts), int(_number(nodes)), hosts.strip(), name, reason)


def _time(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{9,12}", text.strip()) else None  # else N/A, Unknown or NONE


def _partition(name: str, rows: list[list[str]]) -> Partition:
    def nodes_in(*states: str) -> int:
        return sum(int(_number(row[2])) for row in rows if row[3].rstrip("*~#!%$@^-+") in states)

    return Partition(
        name=name.rstrip("*"),
        is_default=name.endswith("*"),
        is_up=any(row[1] == "up" for row in rows),
        nodes=sum(int(_number(row[2])) for row in rows),
        idle=nodes_in("idle"),
        mixed=nodes_in("mixed"),
        gpus=max(_gpus(row[4]) for row in rows),
        cpus=max(int(_number(row[5])) for row in rows),
        memory_mb=max(int(_number(row[6])) for row in rows),
        time_limit=rows[0][7],
    )


def _number(text: str) -> float:
    found = re.match(r"\d+", text.strip())
    return float(found[0]) if found else 0.0


def _gpus(gres: str) -> int:
    """Return the GPUs in `gpu:a100:4(S:0-1),gpu:2`."""
    without_sockets = re.sub(r"\([^)]*\)", "", gres)
    return sum(int(found) for found in re.findall(r"(?:^|,)gpu:(?:[^,:]+:)?(\d+)", without_sockets))


def _described(partition: Partition) -> str:
    if not partition.is_up:
        return say("%1: down.", partition.name)
    has = [f"{partition.cpus} CPUs"]
    if partition.memory_mb > 1:
        has.append(f"{partition.memory_mb / 1024:.0f} GB")
    if partition.gpus:
        has.append(f"{partition.gpus} GPUs")
    free = say("%1: %2 of %3 nodes free", partition.name, partition.idle, partition.nodes)
    partly = say("%1 partly free", partition.mixed) if partition.mixed else ""
    limit = say("at most %1", partition.time_limit) if partition.time_limit not in ("infinite", "n/a") else ""
    return say("%1 (%2).", join(free, partly, by=", "), join(say("%1 each", ", ".join(has)), limit, by=", "))
