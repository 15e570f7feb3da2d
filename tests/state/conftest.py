"""Shells with names to save."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from shells import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    main = sys.modules["__main__"]
    yield Shell(tmp_path)
    sys.modules["__main__"] = main
