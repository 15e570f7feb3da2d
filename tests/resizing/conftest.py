"""Agents as in tests/faults, and a server of one's own."""

from faults.conftest import make_agent, own  # noqa: F401 (fixtures)
from ownserver import client, groups_of_the_test, own_runtime, runtime_folder  # noqa: F401 (fixtures)
