"""A head agent and its node agents, all real: on this machine, or each in a network namespace of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from agent.harness import AgentClient, AgentProcess
from leaks import children_of
from waits import PATIENCE, until

REPOSITORY = Path(__file__).parents[2]
# Variables that a node agent may have, and that ranks do not get.
CREDENTIALS = {"JUPYTER_TOKEN": "a secret", "JUPYTERHUB_API_TOKEN": "another"}
OF_TASKS = {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "PMI_RANK": "0", "OMPI_COMM_WORLD_RANK": "0"}
NODE_VARIABLES = {"PYTHONPATH": str(REPOSITORY)}


class NodeProcess:
    """`python -m jupyter_dist.agent.node join.json`, as a launcher or a user starts it."""

    def __init__(self, join_file: Path, *arguments: str, prefix: tuple[str, ...] = (), **env: str) -> None:
        command = [*prefix, sys.executable, "-m", "jupyter_dist.agent.node", str(join_file), *arguments]
        self.log = join_file.parent.parent / f"node-{time.monotonic_ns()}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **NODE_VARIABLES, **env},
                start_new_session=True,
            )

    @property
    def agent(self) -> int:
        """The node agent's process, a child of its watcher."""
        return next(iter(until(lambda: children_of(self.process.pid), self.text)))

    def text(self) -> str:
        return self.log.read_text()

    def code(self) -> int:
        """Its exit code, when it has ended; nothing of it is left then."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it still runs: {self.text()}") from None

    def end(self) -> None:
        for pid in (*children_of(self.process.pid), self.process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(PATIENCE)


class TwoNodes:
    """A group of 2 nodes x 2 ranks."""

    def __init__(self, folder: Path) -> None:
        self.head = AgentProcess(folder)
        self.client: AgentClient = self.head.client()
        self.nodes: list[NodeProcess] = []

    @property
    def join_file(self) -> Path:
        return self.head.directory / "join.json"

    def begin(self, num_ranks: int = 4, **fields) -> None:
        self.cwd = self.head.directory.parent / "work"
        self.cwd.mkdir()
        given = {
            "cwd": str(self.cwd),
            "launcher": "external",
            "ranks_per_node": [num_ranks // 2] * 2,
            "start_timeout_seconds": PATIENCE,
            **fields,
        }
        self.client.start(num_ranks, wait=False, **given)

    def join(self, *arguments: str, **options) -> NodeProcess:
        self.nodes.append(NodeProcess(self.join_file, *arguments, **options))
        return self.nodes[-1]

    def join_with(self, file: Path, *arguments: str, **options) -> NodeProcess:
        self.nodes.append(NodeProcess(file, *arguments, **options))
        return self.nodes[-1]

    def ready(self) -> None:
        self.client.wait_group("ready", "dead")
        assert self.client.group["state"] == "ready", (self.client.group, [node.text() for node in self.nodes])

    def end(self) -> None:
        try:
            self.head.__exit__()
        finally:
            for node in self.nodes:
                node.end()
