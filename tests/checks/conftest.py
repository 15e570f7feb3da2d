"""A kernel beside a group of ranks, a group of a server, and the command as a shell runs it."""

from cli.conftest import group  # noqa: F401  (a fixture)
from onegroup import notebook  # noqa: F401  (a fixture)
from ownserver import client, dist, groups_of_the_test, own_runtime, runtime_folder  # noqa: F401  (fixtures)
