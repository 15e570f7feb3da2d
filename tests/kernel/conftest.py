"""A kernel *Ranks* on a group of two ranks; all tests of this folder share group and server."""

import contextlib
import os
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel
from magickernel import Kernel
from ownserver import client, groups_of_the_test, own_runtime, runtime_folder  # noqa: F401  (fixtures)
from waits import PATIENCE

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def spec_path(tmp_path_factory):
    """Where Jupyter finds the kernelspec of this tree, whatever is installed."""
    folder = tmp_path_factory.mktemp("jupyter")
    (folder / "kernels").mkdir()
    (folder / "kernels" / "ranks").symlink_to(ROOT / "jupyter_dist" / "kernel" / "spec")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", os.pathsep.join([str(folder), os.environ.get("JUPYTER_PATH", "")]))
        yield folder


@pytest.fixture(scope="session")
def group(client, spec_path):  # noqa: F811
    """The only group that belongs to nobody: kernels find it."""
    return client.start("shared", num_ranks=2, accelerator="cpu")


@contextlib.contextmanager
def ranks_kernel(**env):
    """A kernel process, and a client of it."""
    manager, blocking = start_new_kernel(PATIENCE, "ranks", env={**os.environ, **env})
    try:
        yield Kernel(manager, blocking)
    finally:
        blocking.stop_channels()
        manager.shutdown_kernel()
        manager.cleanup_resources()


@pytest.fixture(scope="module")
def kernel(group):
    with ranks_kernel() as kernel:
        yield kernel
