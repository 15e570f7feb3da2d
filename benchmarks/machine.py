"""What the figures were measured on, without names and paths."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

VERSIONS = ("torch", "jupyter_server", "ipython", "ipykernel", "pyzmq", "tornado")


def describe() -> dict[str, Any]:
    """Cores, memory, load and versions."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
        "kernel": platform.release().split("-")[0],
        "python": platform.python_version(),
        "load_1m": round(os.getloadavg()[0], 1),
        **{name: metadata.version(name) for name in VERSIONS},
    }


def sentence(machine: dict[str, Any], at: str) -> str:
    """The same in words."""
    versions = ", ".join(f"{name} {machine[name]}" for name in VERSIONS)
    return (
        f"{at}: {machine['cores']} cores ({machine['cpu']}), {machine['memory_gib']} GiB, Linux {machine['kernel']}, "
        f"load {machine['load_1m']} before the run; Python {machine['python']}, {versions}."
    )


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
