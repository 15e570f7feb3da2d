"""How long a test waits: for a state, never for a time.

A test that asserts how soon something happens fails on a machine that is busy. What the product promises to do within
a second is measured by `make bench` (benchmarks/figures/faults.py); a test checks that it happens.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

# Many times what a busy machine needs; only a fault waits this long. Cells that must be ended sleep longer than this.
PATIENCE = 90.0

T = TypeVar("T")


def until(is_so: Callable[[], T], explain: Callable[[], object] = lambda: "it never came to be") -> T:
    """Wait until `is_so` returns something true, and return that; else fail with what `explain` returns."""
    deadline = time.monotonic() + PATIENCE
    while not (found := is_so()):
        assert time.monotonic() < deadline, explain()
        time.sleep(0.02)
    return found
