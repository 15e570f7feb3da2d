"""One group of two ranks in this very Python; `make matrix` runs these tests in one after the other."""

import sys

import pytest
from ownserver import client, own_runtime, runtime_folder  # noqa: F401  (fixtures)


@pytest.fixture(scope="session")
def ipython_folder(tmp_path_factory):
    """Where IPython would write: it does not exist."""
    return tmp_path_factory.mktemp("home") / "ipython"


@pytest.fixture(scope="session")
def group(client, ipython_folder):  # noqa: F811
    env = {"IPYTHONDIR": str(ipython_folder)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(ipython_folder))
        return client.start("compat", num_ranks=2, accelerator="cpu", python=sys.executable, env=env)
