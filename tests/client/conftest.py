"""One group for all that these tests run."""

import pytest
from magickernel import kernel_of
from ownserver import client, groups_of_the_test, own_runtime, runtime_folder, variables  # noqa: F401  (fixtures)


@pytest.fixture(scope="session")
def shared_group(client):  # noqa: F811
    return client.start("shared", num_ranks=2, accelerator="cpu")


@pytest.fixture
def group(shared_group):
    """Ranks that do nothing: a test that failed may have left a cell on them."""
    status = shared_group.status()
    if status.state != "ready" or any(rank.state != "idle" for rank in status.ranks):
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
