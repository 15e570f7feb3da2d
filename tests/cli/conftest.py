"""The command as a shell runs it."""

import pytest
from ownserver import client, dist, groups_of_the_test, own_runtime, runtime_folder  # noqa: F401  (fixtures)


@pytest.fixture(scope="module")
def group(client):  # noqa: F811
    group = client.start("from-shell", num_ranks=2, accelerator="cpu")
    yield group
    group.shutdown()
