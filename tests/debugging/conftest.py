"""The agent of tests/agent, with two ranks."""

from agent.conftest import _no_leaks, process  # noqa: F401 (fixtures)
