"""Finds a running Jupyter server, or starts a private one."""

from __future__ import annotations

from .attendance import attendance, own_process
from .private import own_environ, private_server
from .running import Server, running_servers, server_of

__all__ = ["Server", "attendance", "own_environ", "own_process", "private_server", "running_servers", "server_of"]
