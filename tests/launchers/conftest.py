"""A real Slurm cluster and a real Ray cluster for all tests of this folder, and launchers to use it with."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sys
from functools import partial
from pathlib import Path

import pytest
from launchers import raycluster
from launchers.raycluster import RayCluster
from launchers.slurmcluster import SlurmCluster, missing
from traitlets.config import Config
from waits import PATIENCE, until_async

from jupyter_dist.server.launchers.allocation import AgentStarted, Allocation, Wanted
from jupyter_dist.server.launchers.registry import Launchers
from jupyter_dist.system.processes import command_line, processes

PROGRAM = Path(__file__).with_name("nodeprogram.py")


def skip_without(lacks, required):
    """Skip a test that lacks something, unless this variable requires it."""
    if lacks:
        assert required not in os.environ, lacks
        pytest.skip(lacks)


@contextlib.contextmanager
def started(cluster):
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    skip_without(missing(), "JUPYTER_DIST_REQUIRE_SLURM")
    with started(SlurmCluster(tmp_path_factory.mktemp("slurm"))) as cluster:
        yield cluster


@pytest.fixture
def slurm(cluster, monkeypatch):
    """The cluster, with this process on its login node."""
    monkeypatch.setenv("PATH", cluster.env["PATH"])
    monkeypatch.setenv("SLURM_CONF", cluster.env["SLURM_CONF"])
    yield cluster
    cluster.cancel_all()


@pytest.fixture(scope="session")
def ray_cluster():
    skip_without(raycluster.missing(), "JUPYTER_DIST_REQUIRE_RAY")
    with started(RayCluster()) as cluster:
        yield cluster


@pytest.fixture
def ray(ray_cluster, monkeypatch):
    """The cluster, with this process on its head."""
    ray_cluster.mend()
    for name, value in ray_cluster.env.items():
        monkeypatch.setenv(name, value)
    return ray_cluster


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


class Place:
    """Servers' launchers, one after another, and a folder for each group."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "shared").mkdir()
        self.config = Config()
        self.config.Launcher.poll_seconds = 0.1
        self.config.SlurmLauncher.poll_seconds = 0.1
        self.config.RayLauncher.python = sys.executable
        self.config.SlurmLauncher.shared_dir = str(folder / "shared")

    def launchers(self) -> Launchers:
        return Launchers(self.config)

    def wanted(self, *actions: str, num_nodes: int = 2, **options) -> Wanted:
        group_id = f"g-{secrets.token_hex(4)}"
        directory = self.folder / group_id
        directory.mkdir(mode=0o700)
        join = directory / "join.json"
        join.touch(0o600)
        join.write_text("the secret")
        return Wanted(
            group_id=group_id,
            name="train",
            directory=directory,
            num_nodes=num_nodes,
            command=(sys.executable, str(PROGRAM), str(join), *actions),
            env={**os.environ, "FROM_THE_GROUP": "yes", "OF_GROUP": group_id},
            cwd=str(self.folder),
            options=options,
            files=(join,),
        )


def running(group_id: str) -> list[int]:
    """The processes that were started for a group: its files are arguments, or its program was given them in pipes."""
    return [pid for pid in processes() if any(group_id in word for word in _words(pid))]


def _words(pid: int) -> list[str]:
    command = [os.fsdecode(word) for word in command_line(pid)]
    if str(PROGRAM) in command:
        with contextlib.suppress(OSError):
            command += Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
    return command


class Followed:
    """The events of an allocation as they come."""

    def __init__(self, allocation: Allocation) -> None:
        self.allocation = allocation
        self.seen: list[object] = []
        self._events = allocation.events()

    async def until(self, kind, count: int = 1) -> list:
        """Wait until there are so many events of this kind; return those."""

        async def wait() -> None:
            while len(self.of(kind)) < count:
                self.seen.append(await anext(self._events))

        try:
            await asyncio.wait_for(wait(), PATIENCE)
        except (asyncio.TimeoutError, StopAsyncIteration) as err:
            raise AssertionError((kind, self.seen, await self.allocation.logs(None, 2000))) from err
        return self.of(kind)

    async def until_ready(self) -> None:
        """Wait until the program on each node waits for its end."""
        await self.until(AgentStarted, self.allocation.num_nodes)
        for node in range(self.allocation.num_nodes):
            await until_async(partial(self._has_said, node))

    async def _has_said(self, node: int) -> bool:
        return f"node {node}: " in await self.allocation.logs(node, 1000)

    def of(self, kind) -> list:
        return [event for event in self.seen if isinstance(event, kind)]
