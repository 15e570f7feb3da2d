"""What is measured: something to call that returns its seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .driver import Driver

Call = Callable[[], float]


def timed(work: Callable[[], object]) -> Call:
    """Work of this process, by this process's clock."""

    def call() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return call


def asked(driver: Driver, do: str, timeout: float = 60.0, **arguments: Any) -> Call:
    """Work of a driver, by its own clock."""
    return lambda: float(driver.ask(do, timeout, **arguments)["seconds"])
