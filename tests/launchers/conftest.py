"""A real Slurm cluster and a real Ray cluster for all tests of this folder, and launchers to use it with."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest
from launchers import raycluster
from launchers.raycluster import RayCluster
from launchers.slurmcluster import SlurmCluster, missing
from traitlets.config import Config

from jupyter_dist.testing.launchers import Place


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


def engines_config(folder: Path) -> Config:
    """The configuration of a server that uses the clusters of these tests."""
    config = Config()
    config.SlurmLauncher.poll_seconds = 0.1
    config.RayLauncher.python = sys.executable
    config.SlurmLauncher.shared_dir = str(folder / "shared")
    return config


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, engines_config(tmp_path))
