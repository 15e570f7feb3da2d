"""Groups on a server of their own, and the command as a shell runs it."""

from ownserver import client, dist, groups_of_the_test, own_runtime, runtime_folder  # noqa: F401  (fixtures)
