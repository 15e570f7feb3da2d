"""A server extension that gives a group an hour of samples, as if a page had followed it."""

from __future__ import annotations

import math
import time
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

SECONDS = 3600
GAP = range(1500, 1700)  # nobody looked


class HourHandler(APIHandler):
    """Adds the samples to the ring of the server."""

    @web.authenticated
    def post(self, name: str) -> None:
        """Answer with how many there are."""
        group = self.settings["jupyter_dist_service"].manager.get(name)
        begin = time.time() - SECONDS - 30
        for second in (second for second in range(SECONDS) if second not in GAP):
            group.memory.add(_sample(begin + second, second, group.world_size))
        self.finish({"samples": SECONDS - len(GAP)})


def _sample(at: float, second: int, num_ranks: int) -> Any:
    return {"at": at, "ranks": [_memory(rank, second) for rank in range(num_ranks)]}


def _memory(rank: int, second: int) -> dict[str, Any]:
    used = 1 + math.sin(second / 40 + rank) + (second * 7919 + rank * 104729) % 97 / 97
    allocated = int(used * 2**33)
    return {
        "rank": rank,
        "resident_bytes": int((2 + used) * 2**28),
        "allocated_bytes": allocated,
        "reserved_bytes": allocated + 2**30,
        "peak_bytes": 2**35,
        "device_used_bytes": allocated + 2**31,
        "cpu_percent": 100 * used / 3,
    }


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    return [{"module": "benchmarks.pasthour"}]


def _load_jupyter_server_extension(serverapp: Any) -> None:
    path = url_path_join(serverapp.base_url, "benchmarks", "hour", "([a-z]+)")
    serverapp.web_app.add_handlers(".*$", [(path, HourHandler)])
