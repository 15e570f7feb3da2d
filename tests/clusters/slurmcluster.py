"""A real Slurm cluster of this user on this machine: slurmctld, two slurmd and munge, of Debian's packages.

It needs no root, no namespaces and no configuration of the system: the daemons run with files in one folder and on ports
of their own. Starting it takes less than a second.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from waits import PATIENCE, until

INSTALL = "apt-get install -y --no-install-recommends slurmctld slurmd slurm-client munge"
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo", "munged")
NODES = ("n1", "n2")
SYSTEM_PATH = "/usr/sbin:/usr/local/sbin:/sbin"  # of the daemons; not on the PATH of every user

CONFIG = """\
ClusterName=ci
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/munge.sock
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/ctld
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/log/ctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmctldParameters=enable_configless
SlurmdParameters=config_overrides
SlurmdTimeout=10
KillWait=30
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=10000,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobAcctGatherType=jobacct_gather/none
NodeName=n1 NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[1]} CPUs=8 RealMemory=2000 State=UNKNOWN
NodeName=n2 NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[2]} CPUs=8 RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=60 State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=60 State=UP PriorityTier=10 PreemptMode=OFF
"""


def missing() -> str | None:
    """What this machine lacks, with the command that installs it; None if a cluster can be started."""
    lacks = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    return f"Slurm's {', '.join(lacks)} are not installed: {INSTALL}" if lacks else None


class SlurmCluster:
    """Two nodes, `n1` and `n2`, of 8 CPUs; partitions `main` and `urgent`, whose jobs preempt those of `main`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("spool-n1", "spool-n2", "ctld", "log", "munge"):
            (folder / name).mkdir(mode=0o700)
        (folder / "munge" / "key").write_bytes(os.urandom(1024))
        (folder / "munge" / "key").chmod(0o400)
        host = socket.gethostname().partition(".")[0]
        config = CONFIG.format(host=host, folder=folder, user=getpass.getuser(), ports=_free_ports(3))
        (folder / "slurm.conf").write_text(config)
        self.env = {**os.environ, "PATH": _path(), "SLURM_CONF": str(folder / "slurm.conf")}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        munge = self.folder / "munge"
        self._begin(
            "munged", "--foreground", "--force", f"--socket={munge}/munge.sock", f"--key-file={munge}/key",
            f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed",
        )  # fmt: skip
        until((munge / "munge.sock").exists, lambda: self._said("munged"))
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        until(lambda: self.states() == {"idle": 2}, lambda: (self.states(), self._said("slurmctld")))

    def end(self) -> None:
        """End the jobs, then all daemons."""
        with suppress(AssertionError, subprocess.SubprocessError):
            self.cancel_all()
        for name in reversed(list(self._daemons)):
            self.kill(name, signal.SIGTERM)

    # -- daemons ----------------------------------------------------------------------------------------------

    def start_controller(self, *, clean: bool = False) -> None:
        self._begin("slurmctld", "-D", *(["-c"] if clean else []))
        until(lambda: self.ask("scontrol", "ping").returncode == 0, lambda: self._said("slurmctld"))

    def start_node(self, node: str) -> None:
        self._begin("slurmd", "-D", "-N", node, name=node)

    def kill(self, name: str, signum: signal.Signals = signal.SIGKILL) -> None:
        """Kill a daemon: munged, slurmctld, n1 or n2."""
        daemon = self._daemons.pop(name)
        daemon.send_signal(signum)
        try:
            daemon.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait(PATIENCE)

    def _begin(self, program: str, *arguments: str, name: str = "") -> None:
        with open(self.folder / "log" / f"{name or program}.out", "ab") as log:
            self._daemons[name or program] = subprocess.Popen(
                [shutil.which(program, path=_path()) or program, *arguments],
                env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def _said(self, name: str) -> str:
        return (self.folder / "log" / f"{name}.out").read_text()[-2000:]

    # -- asking -----------------------------------------------------------------------------------------------

    def ask(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def states(self) -> dict[str, int]:
        lines = [line.split() for line in self.ask("sinfo", "-h", "-p", "main", "-o", "%T %D").stdout.splitlines()]
        return {line[0]: int(line[1]) for line in lines}

    def jobs(self) -> dict[str, str]:
        """The state of each job that is not over, by its id."""
        return dict(line.split() for line in self.ask("squeue", "-h", "-o", "%i %T").stdout.splitlines())

    def cancel_all(self) -> None:
        self.ask("scancel", "--full", "--user", getpass.getuser())
        until(lambda: not self.jobs(), self.jobs)


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}"


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for found in sockets:
        found.bind(("127.0.0.1", 0))
    ports = [found.getsockname()[1] for found in sockets]
    for found in sockets:
        found.close()
    return ports
