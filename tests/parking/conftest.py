"""The ranks of tests/rank, and an end of each test with what it began with."""

from agent.conftest import _no_leaks  # noqa: F401 (fixture)
from rank.conftest import shared, zygote  # noqa: F401 (fixtures)
