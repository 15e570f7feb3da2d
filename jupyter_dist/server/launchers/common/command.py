"""Options about the command that a launcher starts on each node: what runs before and around it, and its variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.server.launchers.options import Option, fault_in, matches

# A login shell, in which clusters define `module` and `conda`. A line of the prologue that fails ends the node agent.
PROLOGUE = """\
set -e
{lines}
set +e
exec "$@"
"""
CONTAINER_PYTHON = "python3"
TUNNELS = {
    "ssh": ("ssh", "-T", "-o", "BatchMode=yes", "{host}"),
    "srun": ("srun", "--overlap", "--jobid={job}", "--nodes=1", "--ntasks=1", "--nodelist={host}"),
}
# Variables that programs need wherever they run.
_ALWAYS = frozenset({"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TZ", "USER"})
_OURS = "JUPYTER_DIST_"
_NAMES = r"[A-Za-z_][A-Za-z0-9_]*\*?(,\s*[A-Za-z_][A-Za-z0-9_]*\*?)*"


def _wrong_mounts(value: list[str]) -> str | None:
    wrong = next((word for word in value if not word.startswith("/") or "," in word), None)
    return None if wrong is None else fault_in(wrong, "a mount looks like /data or /data:/mnt:ro.")


def wrong_tunnel(value: list[str]) -> str | None:
    """Return the fault of words that start a program on a node, as the end of a sentence."""
    if value in (["ssh"], ["srun"]):
        return None
    try:
        hosts = "".join(value).format(host="\0", job="", node=0).count("\0")
    except (LookupError, ValueError):
        hosts = 0
    return None if hosts else say("has no {host}; a tunnel looks like ssh, or ssh -p 2222 {host}.")


COMMAND_OPTIONS = (
    Option("prologue", "Before the ranks", "Lines of bash that run on each node before the node agent, in a login"
           " shell: module load gcc; source /path/venv/bin/activate. Ranks have the variables that they export.",
           kind="script", is_advanced=True),
    Option("environment_passed", "What is passed on", "Which variables of the server nodes get: all, none, or names"
           " separated by commas, such as WANDB_*,DATA. Those that the group sets always are.", is_advanced=True,
           choices=("all", "none"), check=matches(_NAMES, "names look like WANDB_*,DATA; or all, or none.")),
    Option("command_prefix", "In front of the command", "A program that starts the node agent on each node:"
           " numactl --interleave=all.", kind="words", is_advanced=True),
    Option("container", "Container image", "The image that node agents and ranks run in: a file, docker://... or"
           " nvcr.io#.... It needs torch and the same jupyter_dist.", is_advanced=True,
           check=matches(r"[A-Za-z0-9_./~:#@+-]+", "an image looks like /images/torch.sif or docker://pytorch/pytorch.")),
    Option("container_runtime", "Started by", "What starts the container. Empty: apptainer.", is_advanced=True,
           choices=("apptainer", "singularity"),
           check=matches("apptainer|singularity", "it is apptainer or singularity.")),
    Option("container_python", "Python in the container", say("Its path there. Empty: %1.", CONTAINER_PYTHON),
           is_advanced=True, check=matches(r"[A-Za-z0-9_./+-]+", "a Python looks like /opt/conda/bin/python.")),
    Option("container_mounts", "Folders in the container", "More folders of the node that the container sees: /data"
           " /scratch:/mnt. The working folder is always among them.", kind="words", is_advanced=True,
           check=_wrong_mounts),
    Option("container_arguments", "Arguments of the container", "More arguments for apptainer or singularity exec.",
           kind="words", is_advanced=True),
    Option("tunnel", "Tunnel", "Where nodes cannot connect to the server's machine: what starts a program"
           " on a node, through which its agent reaches the head: ssh -o BatchMode=yes {host}.", kind="words",
           is_advanced=True, choices=("ssh",), check=wrong_tunnel),
    Option("output_folder", "Folder for logs", "A folder on the server's machine that gets the logs of the nodes when"
           " the group is shut down. Empty: they are deleted.", is_advanced=True,
           check=matches(r"[/~][^\x00]*", "a folder looks like /home/me/logs or ~/logs.")),
)  # fmt: skip


def node_command(options: Mapping[str, Any], command: Sequence[str], cwd: str) -> tuple[str, ...]:
    """Return the command for a node: the node agent's, in its container, behind its prefix, after its prologue."""
    inside = [options.get("container_python", CONTAINER_PYTHON), *command[1:]] if "container" in options else command
    words = [*_container(options, cwd), *inside]
    words = [*options.get("command_prefix", ()), *words]
    if prologue := options.get("prologue"):
        words = ["/bin/bash", "-l", "-c", PROLOGUE.format(lines=prologue), "prologue", *words]
    return tuple(words)


def tunnel_words(options: Mapping[str, Any]) -> list[str]:
    """Return the words that start a program on {host}; an empty list if nodes reach the head by themselves."""
    words = list(options.get("tunnel", ()))
    return list(TUNNELS.get(words[0], words)) if len(words) == 1 else words


def passed(options: Mapping[str, Any], env: Mapping[str, str], engine: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables of the server that nodes get. Ranks get the group's own from the head.

    Args:
        options: the options of the group.
        env: the variables of the server.
        engine: beginnings of variables that the tools of the engine need.
    """
    wanted = str(options.get("environment_passed", "all"))
    if wanted == "all":
        return dict(env)
    patterns = [] if wanted == "none" else [word.strip() for word in wanted.split(",")]
    exact = _ALWAYS.union(word for word in patterns if not word.endswith("*"))
    prefixes = (_OURS, *engine, *(word[:-1] for word in patterns if word.endswith("*")))
    return {name: value for name, value in env.items() if name in exact or name.startswith(prefixes)}


def _container(options: Mapping[str, Any], cwd: str) -> list[str]:
    runtime = options.get("container_runtime", "apptainer")
    if "container" not in options or runtime == "pyxis":  # srun starts the latter
        return []
    mounts = [cwd, *options.get("container_mounts", ())]
    gpus = ["--nv"] * bool(re.search("[1-9]", str(options.get("gpus_per_node", ""))))
    binds = [f"--bind={mount}" for mount in mounts]
    return [
        runtime,
        "exec",
        *gpus,
        *binds,
        f"--pwd={cwd}",
        *options.get("container_arguments", ()),
        options["container"],
    ]
