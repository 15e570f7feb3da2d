"""A server extension that measures, inside a Jupyter server, how long its event loop makes others wait."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

TICK_SECONDS = 0.005


class LagMeter:
    """Asks the loop for a call every 5 ms, and remembers by how much the latest came late."""

    def __init__(self) -> None:
        self._due = 0.0
        self._cpu = 0.0
        self.reset()

    def start(self) -> None:
        """Measure in the running loop, forever."""
        self._cpu = time.thread_time()
        self._due = time.monotonic() + TICK_SECONDS
        asyncio.get_running_loop().call_at(self._due, self._tick)

    def reset(self) -> None:
        """Reset the measurement."""
        self.longest = self.longest_cpu = 0.0
        self.ticks = self.late = 0

    def to_dict(self) -> dict[str, float]:
        """Wall time of waits, and how much of one wait the loop's own thread computed; ms."""
        return {
            "longest_ms": self.longest * 1000,
            "longest_cpu_ms": self.longest_cpu * 1000,
            "ticks": self.ticks,
            "ticks_over_50_ms": self.late,
        }

    def _tick(self) -> None:
        lag, cpu = time.monotonic() - self._due, time.thread_time() - self._cpu
        self.longest = max(self.longest, lag)
        self.longest_cpu = max(self.longest_cpu, cpu)
        self.ticks += 1
        self.late += lag > 0.05
        self.start()


async def measure_alone() -> None:
    """An event loop with nothing else to do: a line in, what was measured since the last one out."""
    meter = LagMeter()
    meter.start()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        print(json.dumps(meter.to_dict()), flush=True)
        meter.reset()


class LagHandler(APIHandler):
    """What was measured since the last time it was asked."""

    @web.authenticated
    def get(self) -> None:
        """Answer, and reset."""
        meter: LagMeter = self.settings["benchmarks_lag"]
        self.finish(json.dumps(meter.to_dict()))
        meter.reset()


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    return [{"module": "benchmarks.lagmeter"}]


async def _start_jupyter_server_extension(serverapp: Any) -> None:
    serverapp.web_app.settings["benchmarks_lag"].start()


def _load_jupyter_server_extension(serverapp: Any) -> None:
    serverapp.web_app.settings["benchmarks_lag"] = LagMeter()
    path = url_path_join(serverapp.base_url, "benchmarks", "lag")
    serverapp.web_app.add_handlers(".*$", [(path, LagHandler)])


if __name__ == "__main__":
    asyncio.run(measure_alone())
