"""The standard library as it was when the rank started, for our own code only.

Cells replace functions in it: mocks patch `os`, frozen clocks patch every module that has `monotonic`. These names
always refer to the originals.
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
    # asyncio of Python 3.14 makes a lock for each call_soon_threadsafe(): the side thread wakes the main thread by it.
    importlib.import_module("asyncio.events").threading = threading

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
    """Return the text of a file in /proc, without `open`, which may be a mock. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(fd, 1 << 16), b"")).decode("utf-8", "replace")
    finally:
        os.close(fd)
