"""Finds a running Jupyter server, or starts a private one."""

from __future__ import annotations

from .private import PrivateServer
from .running import Server, running_servers, server_of

__all__ = ["PrivateServer", "Server", "running_servers", "server_of"]
