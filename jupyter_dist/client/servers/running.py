"""Finds this user's running Jupyter servers from their runtime files, without the slow import of jupyter_server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from jupyter_core.paths import jupyter_runtime_dir

from jupyter_dist.system.files.jsonfile import read_json

from .ownership import is_our_port, is_ours

PRIVATE = "jupyter_dist_private"  # in the runtime file of a private server


@dataclass(frozen=True)
class Server:
    """Where a server listens, and its token."""

    url: str
    token: str = field(default="", repr=False)
    pid: int | None = None
    sock: str = ""  # its unix socket, if it has one
    is_local: bool = False  # found by its runtime file on this machine; its certificate is often self-signed
    is_private: bool = False  # started for clients without a server; ends after the last of them

    @property
    def is_own(self) -> bool:
        """Whether the server started this process, or is this user's server in JupyterHub."""
        return not self.is_private and (self.pid is None or self.pid in _parents())


def running_servers() -> list[Server]:
    """Return the servers of this user on this machine: the kernel's own first, then the newest, private ones last."""
    found = sorted(_server_files(), key=lambda pair: -pair[0])
    servers = [_from_info(info) for _, info in found]
    parents = _parents()
    # Stable: the newest of the others first.
    servers.sort(key=lambda server: (server.is_private, server.pid not in parents))
    return [*servers, *_of_hub(servers)]


def server_of(url: str, token: str | None = None) -> Server:
    """Return the server at `url` (also `http+unix://`); the default token is from its file or the environment."""
    wanted = url.rstrip("/")
    for server in running_servers():
        if server.url.rstrip("/") == wanted and token in (None, server.token):
            return server
    parts = urlsplit(url)
    sock = unquote(parts.netloc) if parts.scheme == "http+unix" else ""
    return Server(url, _token_for(parts.path) if token is None else token, sock=sock)


def _token_for(path: str) -> str:
    """Return the token for a server without one: JupyterHub's, for its own server only."""
    if path.strip("/") and path.strip("/") == os.environ.get("JUPYTERHUB_SERVICE_PREFIX", "").strip("/"):
        return os.environ.get("JUPYTERHUB_API_TOKEN", "")
    return os.environ.get("JUPYTER_TOKEN", "")


def _of_hub(known: list[Server]) -> list[Server]:
    """Return the server that JupyterHub started for this process, if its runtime file is not visible."""
    parts = urlsplit(os.environ.get("JUPYTERHUB_SERVICE_URL", ""))
    if not parts.port or any(urlsplit(server.url).path.rstrip("/") == parts.path.rstrip("/") for server in known):
        return []
    if not is_our_port(parts.port):
        return []
    # It listens on all interfaces, which is not an address to connect to.
    return [Server(f"{parts.scheme}://127.0.0.1:{parts.port}{parts.path}", _token_for(parts.path), is_local=True)]


def _parents() -> set[int]:
    """Return the process that started this one, which for a kernel is usually its server."""
    pids = {os.getppid()}
    if (stated := os.environ.get("JPY_PARENT_PID", "")).isdigit():
        pids.add(int(stated))
    return pids


def _server_files() -> Iterator[tuple[float, dict[str, Any]]]:
    for path in Path(jupyter_runtime_dir()).glob("jpserver-*.json"):
        try:
            info = read_json(path)
            modified = path.stat().st_mtime
        except (OSError, ValueError):  # the file is being written, or its server has just ended
            continue
        if isinstance(info, dict) and str(info.get("url", "")).startswith("http") and is_ours(info):
            yield modified, info


def _from_info(info: dict[str, Any]) -> Server:
    token = info.get("token") or _token_for(urlsplit(info["url"]).path)
    is_private = info.get(PRIVATE) is True
    return Server(info["url"], token, info["pid"], info.get("sock") or "", is_local=True, is_private=is_private)
