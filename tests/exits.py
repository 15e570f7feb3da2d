"""What a failed test reports of ranks that died in it: their last words, which else end with their group."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from agent.harness import AgentClient

from jupyter_dist.client import Group


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Add the ends of ranks to the report of a test that failed."""
    report = yield
    if report.failed:
        report.sections += [("a rank that died", text) for text in _exits(getattr(item, "funcargs", {}))]
    return report


def _exits(fixtures: dict[str, Any]) -> Iterator[str]:
    for fixture in fixtures.values():
        for rank in _model(fixture).get("ranks", ()):
            if rank["exit"]:
                yield f"rank {rank['rank']}: {rank['exit']['reason']}\n{rank['exit']['stderr']}"


def _model(fixture: Any) -> dict[str, Any]:
    """Return the model of a group of the Python client, or of the harness of an agent; empty of anything else."""
    if isinstance(fixture, Group):
        with contextlib.suppress(Exception):  # its server has ended: the failure is reported without it
            return fixture.status().model
    return fixture.group if isinstance(fixture, AgentClient) else {}
