"""Fixtures: one group for all that a folder of tests runs."""

import pytest
from magickernel import kernel_of
from ownserver import client, groups_of_the_test, own_runtime, runtime_folder, variables  # noqa: F401  (fixtures)


@pytest.fixture(scope="session")
def shared_group(client):  # noqa: F811
    return client.start("shared", num_ranks=2, accelerator="cpu")


def _is_idle(group):
    status = group.status()
    return status.state == "ready" and all(rank.state == "idle" for rank in status.ranks)


@pytest.fixture(scope="module")
def _no_names(shared_group):
    """No names that an earlier file left: which files a worker runs depends on how fast they are."""
    if _is_idle(shared_group):
        shared_group.run("%reset -f", silent=True)


@pytest.fixture
def group(shared_group, _no_names):
    """Ranks that do nothing: a test that failed may have left a cell on them."""
    if not _is_idle(shared_group):
        shared_group.restart()
    return shared_group


@pytest.fixture(scope="session")
def notebook(tmp_path_factory):
    """A kernel with a group of two ranks, on a server of its own that no other test sees; its cells are local."""
    folder = tmp_path_factory.mktemp("notebook")
    with kernel_of(folder / "lesson.ipynb", **variables(tmp_path_factory.mktemp("rt"))) as kernel:
        kernel.folder = folder
        assert kernel.run("%dist_init -n 2").status == "ok"
        kernel.run("%dist_mode -d")
        yield kernel
