"""What a kernel's processes use: jupyter-resource-usage and JupyterLab's status bar ask kernels for it."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterable
from typing import Any

import psutil

from jupyter_dist.protocol.models import models


class Usage:
    """Processor and memory of the ranks, with their children, and of this process."""

    def __init__(self) -> None:
        self._processes: dict[int, psutil.Process] = {}  # psutil measures the processor between two calls

    def reply(self, pids: Iterable[int]) -> dict[str, Any]:
        """Return the content of a usage_reply as ipykernel's: percent of a processor, bytes."""
        found = {process.pid: process for pid in (os.getpid(), *pids) for process in _with_children(pid)}
        self._processes = {pid: self._processes.get(pid, process) for pid, process in found.items()}
        memory = psutil.virtual_memory()
        return {
            "hostname": socket.gethostname(),
            "pid": os.getpid(),
            "kernel_cpu": sum(filter(None, (_value(each, "cpu_percent") for each in self._processes.values()))),
            "kernel_memory": sum(getattr(_value(each, "memory_info"), "rss", 0) for each in self._processes.values()),
            "cpu_count": psutil.cpu_count(logical=True),
            "host_cpu_percent": psutil.cpu_percent(interval=None),
            "host_virtual_memory": dict(memory._asdict()),
        }


def local_pids(group: models.GroupModel) -> list[int]:
    """Return the processes of a group's ranks that run on this machine."""
    if group["nodes"]:
        return []
    return [rank["pid"] for rank in group["ranks"] if rank["pid"] is not None]


def _with_children(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def _value(process: psutil.Process, name: str) -> Any:
    try:
        return getattr(process, name)()
    except psutil.Error:  # it has ended
        return None
