"""The launchers of this package keep the contract that other packages test theirs with, on real engines."""

import pytest
from clusters.conftest import engines_config
from waits import until

from jupyter_dist.testing.launchers import LauncherContract


class Contract(LauncherContract):
    def config(self, folder):
        return engines_config(folder)


@pytest.mark.usefixtures("slurm")
class TestSlurm(Contract):
    name = "slurm"


class TestSlurmStep(Contract):
    """In an allocation of the server's own."""

    name = "slurm"

    @pytest.fixture(autouse=True)
    def in_a_job(self, slurm, monkeypatch):
        """What Slurm sets for a server that was started by a job."""
        job = slurm.ask("sbatch", "--parsable", "--nodes=2", "--output=/dev/null", "--wrap=sleep 600").stdout.strip()
        until(lambda: slurm.jobs().get(job) == "RUNNING", slurm.jobs)
        monkeypatch.setenv("SLURM_JOB_ID", job)
        monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")


class TestPbs(Contract):
    """On a scripted engine."""

    name = "pbs"

    @pytest.fixture(autouse=True)
    def engine(self, queue_of):
        queue_of("pbs")


class TestLsf(Contract):
    """On a scripted engine."""

    name = "lsf"

    @pytest.fixture(autouse=True)
    def engine(self, queue_of):
        queue_of("lsf")


class TestGridEngine(Contract):
    """On a scripted engine."""

    name = "sge"

    @pytest.fixture(autouse=True)
    def engine(self, queue_of):
        queue_of("sge")

    def config(self, folder):
        config = super().config(folder)
        config.GridEngineLauncher.defaults = {"parallel_environment": "per1"}
        return config


@pytest.mark.usefixtures("kubernetes")
class TestKubernetes(Contract):
    """On a scripted cluster."""

    name = "kubernetes"

    def config(self, folder):
        config = super().config(folder)
        config.KubernetesLauncher.defaults = {"image": "torch"}
        return config


@pytest.mark.ray
@pytest.mark.usefixtures("ray")
class TestRay(Contract):
    name = "ray"
