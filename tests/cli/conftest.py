"""The command as a shell runs it."""

import subprocess
import sys

import pytest
from ownserver import client, groups_of_the_test, own_runtime, runtime_folder  # noqa: F401  (fixtures)
from waits import PATIENCE_WITH_A_START

MAIN = "from jupyter_dist.cli.main import main; main()"


@pytest.fixture
def dist(own_runtime, tmp_path):  # noqa: F811
    """Run `jupyter dist ...`; returns the finished process."""

    def run(*arguments, status=0, **options):
        command = [sys.executable, "-c", MAIN, *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=PATIENCE_WITH_A_START, **options
        )
        assert done.returncode == status, (done.stdout, done.stderr)
        return done

    return run


@pytest.fixture(scope="module")
def group(client):  # noqa: F811
    group = client.start("from-shell", num_ranks=2, accelerator="cpu")
    yield group
    group.shutdown()
