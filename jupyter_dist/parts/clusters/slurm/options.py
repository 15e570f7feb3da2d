"""The options of Slurm, and the arguments of sbatch and srun for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.server.launchers.common.command import wrong_tunnel
from jupyter_dist.server.launchers.common.limits import duration, size, zero_is_all
from jupyter_dist.server.launchers.options import Option, fault_in, matches

# We set these options, or they would change the command; getopt also accepts unambiguous beginnings of each.
OURS = frozenset(
    """
    array bcast chdir clusters command-file error export export-file get-user-env help input job-name jobid
    kill-on-bad-exit label multi-prog nodes no-kill no-requeue ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node
    ntasks-per-socket open-mode output overlap parsable pty quiet requeue test-only tres-per-task uid gid usage
    verbose version wait wrap account constraint cpus-per-task gpus gpus-per-node gpus-per-task mem partition qos
    reservation time nodelist container-image container-mounts container-workdir
    """.split()  # noqa: SIM905 - a list would take a screen
)

PYXIS = "pyxis"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.@+:-]*"
_NAMES = rf"{_NAME}(,{_NAME})*"
_GRES = re.compile(r"(?:gres/)?gpu(?::[A-Za-z][^:]*)?(?::(\d{1,4}))?")
_TIME = r"\d+|\d+:\d\d(:\d\d)?|\d+-\d+(:\d\d(:\d\d)?)?"


def _wrong_arguments(words: list[str]) -> str | None:
    for word in words:
        found = re.fullmatch(r"--([a-z][a-z0-9-]*)(=.*)?", word)
        if found is None:
            return fault_in(word, "write each argument in its long form, as --name or --name=value.")
        if any(ours.startswith(found[1]) for ours in OURS):
            return say("has '%1', which the launcher sets itself or has an option for.", f"--{found[1]}")
    return None


OPTIONS = (
    Option("partition", "Partition", "Where to queue; several, separated by commas. Empty: Slurm's default.",
           is_common=True,
           check=matches(_NAMES, "a partition looks like gpu or gpu,long.")),
    Option("account", "Account", "Who pays. Empty: your default account.",
           check=matches(_NAME, "an account looks like physics.")),
    Option("qos", "QOS", "The quality of service.", check=matches(_NAME, "a QOS looks like normal.")),
    Option("time_limit", "Time limit", "As Slurm takes it: minutes, H:MM:SS or D-HH. Empty: the partition's default.",
           is_common=True, measure=zero_is_all(duration),
           check=matches(_TIME, "a time limit looks like 90 (minutes), 2:30:00 or 1-12 (days-hours).")),
    Option("gpus_per_node", "GPUs per node", "GPUs of each node; a type can be named: a100:4.",
           is_common=True,
           check=matches(rf"({_NAME}:)?\d+", "GPUs look like 4 or a100:4.")),
    Option("cpus_per_node", "CPUs per node", "CPUs of each node. Empty: one for each rank.",
           kind="integer", minimum=1),
    Option("memory", "Memory per node", "As Slurm takes it: 64G; 0 is all memory of the node.",
           measure=zero_is_all(size), check=matches(r"\d+[KMGTkmgt]?", "memory looks like 64G or 512000M.")),
    Option("constraint", "Constraint", "Features that the nodes must have.",
           check=matches(r"[A-Za-z0-9_.,&|*()\[\]:@+-]+", "a constraint looks like a100 or a100&nvlink.")),
    Option("nodelist", "Node list", "These nodes must be among the allocated ones.",
           check=matches(r"[A-Za-z0-9_.,\[\]-]+", "nodes look like n[1-2] or n1,n3.")),
    Option("reservation", "Reservation", "Use the nodes of a reservation.",
           check=matches(_NAMES, "a reservation looks like course-42.")),
    Option("exclusive", "Whole nodes", "Let no other job run on the nodes.", kind="flag"),
    Option("requeue", "Requeue", "Let Slurm queue the job again after a preemption or a node failure.",
           kind="flag"),
    Option("new_job", "New job", "Submit a job also where the server itself runs in a job.", kind="flag"),
    Option("extra_arguments", "More arguments", "More arguments for sbatch, such as --switches=1.",
           kind="words", check=_wrong_arguments),
    Option("srun_arguments", "Arguments for srun", "More arguments for the srun that starts a node agent on each node,"
           " such as --cpu-bind=none or --gpu-bind=closest.", kind="words", is_advanced=True, check=_wrong_arguments),
    Option("tunnel", "Tunnel", "Where nodes cannot connect to the server's machine: srun, ssh, or what"
           " starts a program on a node, such as ssh -p 2222 {host}.", kind="words", is_advanced=True,
           choices=("srun", "ssh"), check=wrong_tunnel),
    Option("container_runtime", "Started by", "What starts the container; pyxis does with srun's --container-image."
           " Empty: apptainer.", is_advanced=True, choices=("apptainer", "singularity", PYXIS),
           check=matches(f"apptainer|singularity|{PYXIS}", say("it is apptainer, singularity or %1.", PYXIS))),
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
    flags = [
        *["--exclusive"] * bool(options.get("exclusive")),
        "--requeue" if options.get("requeue") else "--no-requeue",
    ]
    return [*named, *flags, *options.get("extra_arguments", ())]


def srun_arguments(options: Mapping[str, Any], cwd: str, folder: str) -> list[str]:
    """Return the arguments of the srun that starts the node agents, in a separate job or in the server's.

    Args:
        options: the options of the group.
        cwd: its working folder.
        folder: the folder of the job, which a container has to see.
    """
    more = list(options.get("srun_arguments", ()))
    if options.get("container_runtime") != PYXIS or "container" not in options:
        return more
    mounts = [
        mount if ":" in mount else f"{mount}:{mount}" for mount in (cwd, folder, *options.get("container_mounts", ()))
    ]
    image = [f"--container-image={options['container']}", f"--container-mounts={','.join(mounts)}"]
    return [*image, f"--container-workdir={cwd}", *options.get("container_arguments", ()), *more]


def step_arguments(options: Mapping[str, Any]) -> list[str]:
    """Return the arguments of srun inside an allocation, which has its partition and its limits already."""
    return [f"{_ARGUMENTS[name]}={options[name]}" for name in _OF_A_STEP if name in options]


def refused_in_a_step(options: Mapping[str, Any]) -> list[str]:
    """Return the options that have no effect inside an allocation."""
    of_jobs = {*_ARGUMENTS, "exclusive", "requeue", "job_name", "extra_arguments"}
    return sorted(of_jobs.intersection(options) - {*_OF_A_STEP})
