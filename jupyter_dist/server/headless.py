"""A private server, in the process of main.py.

It only serves our API to this user's clients, and it reads no configuration: configuration is for servers with
pages. Without a token, every user of the machine could run code here.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# jsonschema imports modules that check formats: our schemas have no formats, and the import takes most of its time.
for _unused in ("isoduration", "rfc3339_validator", "rfc3986_validator", "rfc3987", "rfc3987_syntax", "uri_template"):
    sys.modules.setdefault(_unused, None)  # type: ignore[arg-type]  # importing it raises ImportError

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from jupyter_dist.server.http.bare import MAX_UNASKED_BYTES, bare_application
from jupyter_dist.server.service import Service, Settings
from jupyter_dist.server.spawner.spawner import Spawner
from jupyter_dist.system.limits import within
from jupyter_dist.system.sparing import log_sparingly

# How long the server stays after its last client, so that the next command or cell need not start another.
LINGER_SECONDS = 5.0
LOOK_SECONDS = 0.5
ADDRESS = "127.0.0.1"


class HeadlessServer:
    """Reports its URL to the client that starts it, through the pipe at stdout; ends when it has no client left."""

    def __init__(self, wanted: Mapping[str, Any], answer: Any, spawner: Spawner) -> None:
        self._wanted = wanted
        self._answer = answer
        self._clients = os.open(wanted["clients"], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._left_at: float | None = None
        self._ending = asyncio.Event()
        self._info = Path(wanted["runtime_dir"], f"jpserver-{os.getpid()}.json")
        self._service = Service(Settings(warm_environment=False), spawner, wanted["root_dir"], _kernel_specs)
        sockets = bind_sockets(0, ADDRESS)
        self._port = sockets[0].getsockname()[1]
        application = bare_application(self._service, wanted["token"], self._ending.set)
        self._server = HTTPServer(application, max_body_size=MAX_UNASKED_BYTES)
        self._server.add_sockets(sockets)

    async def run(self) -> None:
        """Serve until no client is left, or until a client asks the server to end; leave groups to the next server."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._ending.set)
        preparing = None
        if (ahead := self._wanted.get("prepare")) is not None:  # for the start that the client requests next
            preparing = asyncio.ensure_future(self._service.manager.prepare(ahead["python"], ahead["environ"]))
        try:
            self._report()
            await self._service.start()
            while not self._is_abandoned():
                with contextlib.suppress(asyncio.TimeoutError):
                    await within(LOOK_SECONDS, self._ending.wait())
                if self._ending.is_set():
                    break
        finally:
            self._info.unlink(missing_ok=True)
            if preparing is not None:
                preparing.cancel()
            await self._service.stop()
            self._server.stop()

    def _report(self) -> None:
        """Announce this server to clients: in the runtime file, and to the client that started it by the pipe."""
        url = f"http://{ADDRESS}:{self._port}/"
        self._write_info(url)
        with contextlib.suppress(BrokenPipeError), self._answer:  # that client was killed: other clients find the file
            self._answer.write(json.dumps({"url": url, "pid": os.getpid()}) + "\n")

    def _write_info(self, url: str) -> None:
        """Write the runtime file, with the fields of jupyter_server's, for clients and `jupyter server list`."""
        info = {
            "url": url,
            "hostname": ADDRESS,
            "port": self._port,
            "sock": "",
            "secure": False,
            "base_url": "/",
            "token": self._wanted["token"],
            "root_dir": os.path.abspath(self._wanted["root_dir"]),
            "password": False,
            "pid": os.getpid(),
            "version": self._service.version,
            self._wanted["mark"]: True,
        }
        unready = self._info.with_suffix(".new")
        with contextlib.suppress(FileNotFoundError):
            unready.unlink()  # of a killed process that had this number
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(unready, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(info, file, indent=2, sort_keys=True)
        unready.rename(self._info)

    def _is_abandoned(self) -> bool:
        """Whether the last client left some seconds ago."""
        if _is_attended(self._clients):
            self._left_at = None
        elif self._left_at is None:
            self._left_at = time.monotonic()
        return self._left_at is not None and time.monotonic() - self._left_at > LINGER_SECONDS


def _is_attended(fd: int) -> bool:
    """Whether any client holds a lock on this file (client/servers/attendance.py)."""
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    fcntl.lockf(fd, fcntl.LOCK_UN)
    return False


async def _kernel_specs() -> Mapping[str, Any]:
    """Return the kernelspecs. jupyter_client is imported only now: the import takes long, and few clients need it."""
    from jupyter_client.kernelspec import KernelSpecManager  # noqa: PLC0415

    specs: Mapping[str, Any] = await asyncio.to_thread(KernelSpecManager().get_all_specs)
    return specs


async def _serve(wanted: Mapping[str, Any], answer: Any, spawner: Spawner) -> None:
    await HeadlessServer(wanted, answer, spawner).run()


def _given_up(why: str) -> SystemExit:
    """Print the reason now. Python would print it at its end, maybe after the client has read stderr."""
    sys.stderr.write(f"{why}\n")
    sys.stderr.flush()
    return SystemExit(1)


def run(wanted: Mapping[str, Any], answer: Any, spawner: Spawner) -> None:
    """Serve until no client is left."""
    log_sparingly(logging.ERROR)
    if not os.path.isdir(wanted["root_dir"]):
        raise _given_up(f"There is no folder {wanted['root_dir']}.")
    asyncio.run(_serve(wanted, answer, spawner))
