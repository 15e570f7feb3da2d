"""The options of Slurm, and the arguments of sbatch and srun for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jupyter_dist.server.launchers.options import Option, matches

# We set these options, or they would change the command; getopt also accepts unambiguous beginnings of each.
OURS = frozenset(
    """
    array bcast chdir clusters command-file error export export-file get-user-env help input job-name jobid
    kill-on-bad-exit label multi-prog nodes no-kill no-requeue ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node
    ntasks-per-socket open-mode output overlap parsable pty quiet requeue test-only tres-per-task uid gid usage
    verbose version wait wrap account constraint cpus-per-task gpus gpus-per-node gpus-per-task mem partition qos
    reservation time nodelist
    """.split()  # noqa: SIM905 - a list would take a screen
)

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.@+:-]*"
_NAMES = rf"{_NAME}(,{_NAME})*"
_GRES = re.compile(r"(?:gres/)?gpu(?::[A-Za-z][^:]*)?(?::(\d{1,4}))?")
_TIME = r"\d+|\d+:\d\d(:\d\d)?|\d+-\d+(:\d\d(:\d\d)?)?"


def _wrong_arguments(words: list[str]) -> str | None:
    for word in words:
        found = re.fullmatch(r"--([a-z][a-z0-9-]*)(=.*)?", word)
        if found is None:
            return f"has {word[:60]!r}; write each argument in its long form, as --name or --name=value."
        if any(ours.startswith(found[1]) for ours in OURS):
            return f"has '--{found[1]}', which the launcher sets itself or has an option for."
    return None


OPTIONS = (
    Option("partition", "Partition", "Where to queue; several, separated by commas. Empty: Slurm's default.",
           is_common=True,
           check=matches(_NAMES, "a partition looks like gpu or gpu,long.")),
    Option("account", "Account", "Who pays. Empty: your default account.",
           check=matches(_NAME, "an account looks like physics.")),
    Option("qos", "QOS", "The quality of service.", check=matches(_NAME, "a QOS looks like normal.")),
    Option("time_limit", "Time limit", "As Slurm takes it: minutes, H:MM:SS or D-HH. Empty: the partition's default.",
           is_common=True,
           check=matches(_TIME, "a time limit looks like 90 (minutes), 2:30:00 or 1-12 (days-hours).")),
    Option("gpus_per_node", "GPUs per node", "GPUs of each node; a type can be named: a100:4.",
           is_common=True,
           check=matches(rf"({_NAME}:)?\d+", "GPUs look like 4 or a100:4.")),
    Option("cpus_per_node", "CPUs per node", "CPUs of each node. Empty: one for each rank.",
           kind="integer", minimum=1),
    Option("memory", "Memory per node", "As Slurm takes it: 64G; 0 is all memory of the node.",
           check=matches(r"\d+[KMGTkmgt]?", "memory looks like 64G or 512000M.")),
    Option("constraint", "Constraint", "Features that the nodes must have.",
           check=matches(r"[A-Za-z0-9_.,&|*()\[\]:@+-]+", "a constraint looks like a100 or a100&nvlink.")),
    Option("nodelist", "Node list", "These nodes must be among the allocated ones.",
           check=matches(r"[A-Za-z0-9_.,\[\]-]+", "nodes look like n[1-2] or n1,n3.")),
    Option("reservation", "Reservation", "Use the nodes of a reservation.",
           check=matches(_NAMES, "a reservation looks like course-42.")),
    Option("requeue", "Requeue", "Let Slurm queue the job again after a preemption or a node failure.",
           kind="flag"),
    Option("new_job", "New job", "Submit a job also where the server itself runs in a job.", kind="flag"),
    Option("extra_arguments", "More arguments", "More arguments for sbatch, such as --exclusive.",
           kind="words", check=_wrong_arguments),
)  # fmt: skip

_ARGUMENTS = {
    "partition": "--partition",
    "account": "--account",
    "qos": "--qos",
    "time_limit": "--time",
    "gpus_per_node": "--gpus-per-node",
    "cpus_per_node": "--cpus-per-task",
    "memory": "--mem",
    "constraint": "--constraint",
    "nodelist": "--nodelist",
    "reservation": "--reservation",
}
_OF_A_STEP = ("gpus_per_node", "cpus_per_node", "memory", "nodelist")


def gpus_of_gres(options: Mapping[str, Any]) -> int:
    """Return how many GPUs of each node are among the generic resources in the further arguments."""
    words = [word.removeprefix("--gres=") for word in options.get("extra_arguments", ()) if word.startswith("--gres=")]
    found = [_GRES.fullmatch(each) for word in words for each in word.split(",")]
    return sum(int(one[1] or 1) for one in found if one)


def job_arguments(options: Mapping[str, Any]) -> list[str]:
    """Return the arguments of sbatch for these options."""
    named = [f"{argument}={options[name]}" for name, argument in _ARGUMENTS.items() if name in options]
    return [*named, "--requeue" if options.get("requeue") else "--no-requeue", *options.get("extra_arguments", ())]


def step_arguments(options: Mapping[str, Any]) -> list[str]:
    """Return the arguments of srun inside an allocation, which has its partition and its limits already."""
    return [f"{_ARGUMENTS[name]}={options[name]}" for name in _OF_A_STEP if name in options]


def refused_in_a_step(options: Mapping[str, Any]) -> list[str]:
    """Return the options that have no effect inside an allocation."""
    return sorted(set(options) - {*_OF_A_STEP, "new_job"})
