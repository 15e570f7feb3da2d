"""The shared group of tests of the client, on a server of its own."""

from client.conftest import _no_names, group, shared_group  # noqa: F401  (fixtures)
from ownserver import client, dist, groups_of_the_test, own_runtime, runtime_folder, variables  # noqa: F401  (fixtures)
