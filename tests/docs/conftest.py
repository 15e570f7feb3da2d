"""The server and the group of the documentation's code blocks."""

from ownserver import client, groups_of_the_test, own_runtime, runtime_folder  # noqa: F401  (fixtures)
