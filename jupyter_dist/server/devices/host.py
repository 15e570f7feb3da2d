"""The host: processors and memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import psutil


@dataclass(frozen=True)
class HostReader:
    """Reads the host through psutil; the first `cpu_percent` is the average since the process started."""

    def read(self) -> dict[str, Any]:
        """Return the Host of docs/api.md."""
        memory = psutil.virtual_memory()
        return {
            "cpu_percent": psutil.cpu_percent(interval=None),
            "cpu_count": len(os.sched_getaffinity(0)),
            "load_1m": os.getloadavg()[0],
            "memory_used_bytes": memory.total - memory.available,
            "memory_total_bytes": memory.total,
        }
