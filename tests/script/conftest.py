"""A group, and the command as a shell runs it."""

from cli.conftest import client, dist, group, groups_of_the_test, own_runtime, runtime_folder  # noqa: F401  (fixtures)
