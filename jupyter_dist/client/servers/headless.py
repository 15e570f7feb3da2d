"""The process of a private server: `python -m jupyter_dist.client.servers.headless`; private.py starts it."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

from jupyter_server.serverapp import ServerApp
from traitlets.config import Config

# A second way to end, should the pipe be held by a forgotten child of the client; groups count as activity.
IDLE_SECONDS = 3600


class HeadlessServer(ServerApp):
    """Tells its client where it listens, through the pipe that it was given as stdout."""

    answer: Any = None

    def start_ioloop(self) -> None:
        """Called last; the loop's first step is to listen, the second to say so."""
        self.io_loop.add_callback(self._answer)
        super().start_ioloop()

    def _answer(self) -> None:
        self.answer.write(json.dumps({"url": self.connection_url}) + "\n")
        self.answer.flush()


def main() -> None:
    """Serve until the client closes its end of the pipe."""
    wanted = json.loads(sys.stdin.buffer.readline())
    HeadlessServer.answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_client, daemon=True).start()
    app = HeadlessServer.instance(config=_config(wanted))
    app.initialize(argv=[], find_extensions=False)
    app.start()


def _config(wanted: dict[str, str]) -> Config:
    return Config(
        {
            "HeadlessServer": {"jpserver_extensions": {"jupyter_dist": True}},
            "ServerApp": {
                "ip": "127.0.0.1",
                "port": 0,
                "root_dir": wanted["root_dir"],
                "open_browser": False,
                "allow_root": True,
                "log_level": "ERROR",
                "shutdown_no_activity_timeout": IDLE_SECONDS,
            },
            "DistApp": {"warm_environment": False},
            "IdentityProvider": {"token": wanted["token"]},
        }
    )


def _end_with_client() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)  # in order: groups are left to the next server


if __name__ == "__main__":
    main()
