"""A group of a server of its own, and the command as a shell runs it."""

from cli.conftest import group  # noqa: F401  (a fixture)
from ownserver import client, dist, groups_of_the_test, own_runtime, runtime_folder  # noqa: F401  (fixtures)
