"""The scripts of a job: one starts the command on each node, one has the command's environment.

The environment travels in a private file, because engines show the variables of a job to other users (`qstat -f`), and
because the tools that start a program on another node of the job pass few variables or none.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from jupyter_dist.server.launchers.allocation import Wanted
from jupyter_dist.server.launchers.environmentfile import environment_script
from jupyter_dist.server.launchers.nodefiles import ENGINE_LOG, LOST, NodeFiles

START_NAME = "start.sh"
ENVIRONMENT_NAME = "environment.sh"

# The script runs on the first host. An engine that cannot start the command on a node is reported as its end.
JOB = """\
#!/bin/sh
umask 077
folder={folder}
[ -O "$folder/{start}" ] || exit 126  # of another user now
exec < /dev/null >> "$folder/{log}" 2>&1
hosts=$({hosts})
count=$(echo "$hosts" | grep -c .)
if [ "$count" -ne {num_nodes} ]; then
  echo "{label} gave the job $count instead of {num_nodes} nodes:" $hosts
  echo {advice}
  exit 1
fi
run=0
while [ -e "$folder/node-0-$run.started" ]; do run=$((run + 1)); done
start() {{
  trap : HUP INT TERM USR1 USR2  # a subshell does not inherit traps, and without it the script ends before its nodes
  if [ "$1" -eq 0 ]; then
    /bin/sh "$folder/{start}" "$@"
    return
  fi
  {starter} "$2" /bin/sh "$folder/{start}" "$@"
  code=$?
  base=$folder/node-$1-$run
  if [ ! -e "$base.started" ]; then
    echo "$2" > "$base.started"
    echo "{lost} $2 {label} could not start the command there (exit code $code)." > "$base.ended"
  fi
}}
trap : HUP INT TERM USR1 USR2
node=0
for host in $hosts; do
  start "$node" "$host" "$run" &
  node=$((node + 1))
done
until wait; do :; done
"""

START = """\
JUPYTER_DIST_NODE_RANK=$1
JUPYTER_DIST_NODE_HOST=$2
JUPYTER_DIST_NODE_RUN=$3
export JUPYTER_DIST_NODE_RANK JUPYTER_DIST_NODE_HOST JUPYTER_DIST_NODE_RUN
. {folder}/{environment}
cd {cwd} 2> /dev/null || cd /
{run}
"""
_RUN = "exec {command}"
# Some engines announce SIGKILL by another signal. The command gets SIGTERM then, as from other engines.
_RUN_NOTIFIED = """\
trap : TERM
trap 'kill -TERM 0' USR1 USR2
(trap '' USR1 USR2; exec {command}) &
until wait; do :; done"""


@dataclass(frozen=True)
class Starter:
    """How an engine starts programs on the nodes of a job, as parts of a shell script."""

    label: str
    hosts: str  # a command that prints each host of the job once
    starter: str  # a command that is given a host, a program and its arguments; jobs may not have it on their PATH
    advice: str  # what to do if the job has another number of nodes
    prefixes: tuple[str, ...]  # the variables that the engine sets for a job
    notifies: bool = False  # whether a signal other than SIGTERM comes before SIGKILL


def job_script(files: NodeFiles, wanted: Wanted, engine: Starter) -> str:
    """Return the script of a job, which is given to the engine."""
    return JOB.format(
        folder=shlex.quote(str(files.folder)),
        log=ENGINE_LOG,
        hosts=engine.hosts,
        num_nodes=wanted.num_nodes,
        label=engine.label,
        advice=shlex.quote(engine.advice),
        start=START_NAME,
        starter=engine.starter,
        lost=LOST,
    )


def write_scripts(files: NodeFiles, wanted: Wanted, engine: Starter) -> None:
    """Write the scripts that the nodes run into the folder of the job. Raises OSError."""
    environment = environment_script(wanted.env.for_private_file(), engine.prefixes)
    run = (_RUN_NOTIFIED if engine.notifies else _RUN).format(
        command=shlex.join(files.command(wanted.command, wanted.files))
    )
    start = START.format(
        folder=shlex.quote(str(files.folder)), environment=ENVIRONMENT_NAME, cwd=shlex.quote(wanted.cwd), run=run
    )
    files.add({START_NAME: start.encode(), ENVIRONMENT_NAME: environment.encode()})
