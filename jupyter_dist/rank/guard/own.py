"""The standard library as it was when the rank started, for our own code alone.

Cells replace functions in it: mocks put a double into `os`, frozen clocks one into every module that has `monotonic`.
What is reached through these names is none of that.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    import gc
    import json
    import linecache
    import os
    import signal
    import socket
    import threading
    import time
    import traceback
else:
    import importlib

    for _name in (
        "asyncio",
        "gc",
        "json",
        "linecache",
        "os",
        "signal",
        "socket",
        "threading",
        "time",
        "traceback",
    ):
        globals()[_name] = SimpleNamespace(**vars(importlib.import_module(_name)))

__all__ = [
    "asyncio",
    "gc",
    "json",
    "linecache",
    "os",
    "read_text",
    "signal",
    "socket",
    "threading",
    "time",
    "traceback",
]


def read_text(path: str) -> str:
    """Return what a file of /proc says; `open` may be a double. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(fd, 1 << 16), b"")).decode("utf-8", "replace")
    finally:
        os.close(fd)
