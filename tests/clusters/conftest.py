"""A real Slurm cluster and a real Ray cluster for all tests of this folder, and launchers to use it with."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest
from clusters import raycluster, scripted
from clusters.kubernetesapi import KubernetesApi
from clusters.raycluster import RayCluster
from clusters.slurmcluster import SlurmCluster, missing
from traitlets.config import Config

from jupyter_dist.protocol.models.sentences import words_of
from jupyter_dist.server.launchers.allocation import Allocation
from jupyter_dist.testing.launchers import Place


@pytest.fixture(autouse=True)
def english_only(monkeypatch):
    """Fails a test in which a launcher says of a job what pages in other languages can only show in English."""
    publish, found = Allocation.publish, []

    def noted(self, event):
        text = getattr(event, "reason", "") or getattr(event, "why", "")
        found.extend([text] if text and not words_of(text) else [])
        publish(self, event)

    monkeypatch.setattr(Allocation, "publish", noted)
    yield
    assert not found


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


class Queue:
    """A scripted batch queue, whose commands are first on PATH."""

    def __init__(self, engine: str, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.path = scripted.install(engine, folder)


@pytest.fixture
def queue_of(tmp_path_factory, monkeypatch):
    """Installs a scripted queue: pbs, lsf or sge."""

    def install(engine):
        queue = Queue(engine, tmp_path_factory.mktemp(engine))
        monkeypatch.setenv("PATH", f"{queue.path}{os.pathsep}{os.environ['PATH']}")
        return queue

    return install


@pytest.fixture
def queue(request, queue_of):
    return queue_of(request.param)


@pytest.fixture
def kubernetes(tmp_path_factory, monkeypatch):
    """A scripted cluster, to which this user has access."""
    api = KubernetesApi(tmp_path_factory.mktemp("kubernetes"))
    monkeypatch.setenv("KUBECONFIG", api.kubeconfig())
    yield api
    api.end()


def engines_config(folder: Path) -> Config:
    """The configuration of a server that uses the clusters of these tests."""
    config = Config()
    config.RayLauncher.python = sys.executable
    for name in ("SlurmLauncher", "PbsLauncher", "LsfLauncher", "GridEngineLauncher"):
        config[name].shared_dir = str(folder / "shared")
        config[name].poll_seconds = 0.1
    return config


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, engines_config(tmp_path))
