"""Which Jupyter server: one that runs, or a private one that is started."""

from __future__ import annotations

from .private import PrivateServer
from .running import Server, running_servers, server_of

__all__ = ["PrivateServer", "Server", "running_servers", "server_of"]
