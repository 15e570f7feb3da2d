"""One group for all that these tests run."""

import pytest
from ownserver import client, own_runtime  # noqa: F401  (fixtures)


@pytest.fixture(scope="session")
def shared_group(client):  # noqa: F811
    return client.start("shared", num_ranks=2, accelerator="cpu")


@pytest.fixture
def group(shared_group):
    if shared_group.status()["state"] != "ready":
        shared_group.restart()
    return shared_group
