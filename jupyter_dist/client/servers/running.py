"""Which Jupyter servers of this user run. Reads their runtime files; jupyter_server itself is slow to import."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_runtime_dir


@dataclass(frozen=True)
class Server:
    """Where a server listens, and the token that it takes."""

    url: str
    token: str = field(default="", repr=False)
    pid: int | None = None
    is_local: bool = False  # found by its file on this machine: its certificate is often self-signed


def running_servers() -> list[Server]:
    """Servers of this user on this machine: the kernel's own first, then the newest."""
    found = sorted(_server_files(), key=lambda pair: -pair[0])
    servers = [_from_info(info) for _, info in found]
    parents = _parents()
    return sorted(servers, key=lambda server: server.pid not in parents)  # stable: the newest of the others first


def server_of(url: str, token: str | None = None) -> Server:
    """The server at `url`; without a token, that of its file or of JUPYTER_TOKEN."""
    wanted = url.rstrip("/")
    for server in running_servers():
        if server.url.rstrip("/") == wanted and token in (None, server.token):
            return server
    return Server(url, os.environ.get("JUPYTER_TOKEN", "") if token is None else token)


def _parents() -> set[int]:
    """The process that started this one, if this is a kernel: most often its server."""
    pids = {os.getppid()}
    if (stated := os.environ.get("JPY_PARENT_PID", "")).isdigit():
        pids.add(int(stated))
    return pids


def _server_files() -> Iterator[tuple[float, dict[str, Any]]]:
    for path in Path(jupyter_runtime_dir()).glob("jpserver-*.json"):
        try:
            info = json.loads(path.read_text())
            modified = path.stat().st_mtime
        except (OSError, ValueError):  # it is being written, or its server has just ended
            continue
        if isinstance(info, dict) and str(info.get("url", "")).startswith("http") and _lives(info.get("pid")):
            yield modified, info


def _lives(pid: Any) -> bool:
    return isinstance(pid, int) and Path(f"/proc/{pid}").exists()


def _from_info(info: dict[str, Any]) -> Server:
    return Server(info["url"], info.get("token") or "", info["pid"], is_local=True)
