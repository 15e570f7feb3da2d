"""Prevents a second run where the first one may not have run all tests: then those that failed are not all there is to run."""

from __future__ import annotations

from typing import Any

import pytest

_HAS_CRASHED = pytest.StashKey[bool]()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Note that a worker has crashed: after some crashes, xdist leaves tests out, and its exit status does not tell."""
    if error is not None:
        node.config.stash[_HAS_CRASHED] = True


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End with another status than that of failed tests, after which the Makefile keeps none for a second run."""
    if session.config.stash.get(_HAS_CRASHED, False):
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
