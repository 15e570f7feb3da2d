"""The launchers of this package keep the contract that other packages test theirs with, on real engines."""

import pytest
from launchers.conftest import engines_config
from waits import until

from jupyter_dist.testing.launchers import LauncherContract


class Contract(LauncherContract):
    def config(self, folder):
        return engines_config(folder)


class TestProcesses(Contract):
    name = "processes"


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


@pytest.mark.ray
@pytest.mark.usefixtures("ray")
class TestRay(Contract):
    name = "ray"
