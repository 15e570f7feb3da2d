"""Groups whose state is saved in a folder of the test."""

import pytest
from ownserver import client, groups_of_the_test, own_runtime, runtime_folder  # noqa: F401  (fixtures)


@pytest.fixture(scope="module")
def shared_group(client):  # noqa: F811
    shared = client.start("kept", num_ranks=2, accelerator="cpu")
    yield shared
    shared.shutdown()


@pytest.fixture
def group(shared_group):
    """Ranks without variables of cells."""
    shared_group.restart()
    return shared_group


@pytest.fixture
def folder(tmp_path):
    """The path of a private folder for saves."""
    return str(tmp_path / "saves")
