"""The process of a private server: `python -m jupyter_dist.client.servers.headless`; private.py starts it.

Only this user's clients may use it, so it ignores the user's configuration, which is for servers with pages: without a
token, every user of the machine could run code here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

# jsonschema builds a grammar to check IRIs if it can, which takes a second or more: longer than the rest of a server's
# start. That check is not used here.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

from jupyter_core.application import JupyterApp
from jupyter_server.auth.authorizer import AllowAllAuthorizer
from jupyter_server.auth.identity import IdentityProvider
from jupyter_server.serverapp import ServerApp
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.ioloop import PeriodicCallback
from traitlets.config import Config

from jupyter_dist.client.servers.attendance import is_attended, open_lock
from jupyter_dist.client.servers.running import PRIVATE

# How long it stays after its last client: the next command or cell finds it, and need not start one.
LINGER_SECONDS = 5.0
LOOK_SECONDS = 0.5
PROOF_SECONDS = 20.0

# What a Jupyter server may serve besides our API; most of it is not enabled here.
OTHERS = ("contents", "kernels", "sessions", "terminals", "kernelspecs", "config/x", "status", "me", "shutdown")
OURS = "jupyter-dist/api"
REFUSALS = frozenset({302, 401, 403, 404, 405})  # 302: redirect to the login page


class OwnIdentityProvider(IdentityProvider):
    """Accepts only the token; its class name has no section in a user's configuration."""


class HeadlessServer(ServerApp):
    """Reports its URL to the client that starts it, through the pipe at stdout; ends when it has no client left."""

    answer: Any = None
    clients = -1  # the descriptor of the file that all clients have locked
    left_at: float | None = None
    # For `jupyter server list` and `stop`: no contents, no kernels.
    default_services = ("api", "shutdown")

    def start_ioloop(self) -> None:
        """Called last: the loop first listens, then reports it."""
        self.io_loop.add_callback(self._answer)
        PeriodicCallback(self._look_for_clients, LOOK_SECONDS * 1000).start()
        super().start_ioloop()

    async def _answer(self) -> None:
        try:
            await self._prove_and_report()
        except Exception as err:  # the outermost level: a server that nobody can find must not stay
            sys.stderr.write(f"{err!r}\n")
            self.stop()

    async def _prove_and_report(self) -> None:
        if (open_ones := await self._open_without_token()) or self.ip != "127.0.0.1":
            sys.stderr.write(f"The server listens on {self.ip} and answers without a token: {open_ones}.\n")
            self.stop()
            return
        super().write_server_info_file()
        with contextlib.suppress(BrokenPipeError), self.answer:  # that client was killed: others find the file
            self.answer.write(json.dumps({"url": self.connection_url, "pid": os.getpid()}) + "\n")

    def write_server_info_file(self) -> None:
        """Called too early: clients find the file, and the server has not been proven to be closed to others."""

    def server_info(self) -> dict[str, Any]:
        """Return what jupyter_server writes into the runtime file."""
        return {**super().server_info(), PRIVATE: True}

    def _look_for_clients(self) -> None:
        """End in order, which leaves groups to the next server, some seconds after the last client."""
        if is_attended(self.clients):
            self.left_at = None
        elif self.left_at is None:
            self.left_at = time.monotonic()
        elif time.monotonic() - self.left_at > LINGER_SECONDS:
            self.stop()

    async def _open_without_token(self) -> list[str]:
        """Return the URLs that do not refuse a request without a token, tested over the network."""
        client = AsyncHTTPClient(force_instance=True, max_clients=50)
        token = {"Authorization": f"token {self.identity_provider.token}"}
        described = await client.fetch(self._request("GET", f"{OURS}/openapi.json", headers=token))
        requests = [self._request(method, path) for method, path in _addresses(json.loads(described.body))]
        answers = await asyncio.gather(*(client.fetch(request, raise_error=False) for request in requests))
        client.close()
        asked = zip(requests, answers, strict=True)
        return [f"{request.method} {request.url}" for request, answer in asked if answer.code not in REFUSALS]

    def _request(self, method: str, path: str, **options: Any) -> HTTPRequest:
        url = self.connection_url + path
        fixed: dict[str, Any] = {
            "allow_nonstandard_methods": True,
            "follow_redirects": False,
            "request_timeout": PROOF_SECONDS,
        }
        return HTTPRequest(url, method, **fixed, **options)


def _addresses(description: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return all of our URLs, from the OpenAPI document, and those that a Jupyter server may have besides."""
    for path, verbs in description["paths"].items():
        named = re.sub(r"{\w+}", "0", path)
        yield from ((verb.upper(), OURS + named) for verb in verbs if verb != "parameters")
    for name in OTHERS:
        yield from ((method, f"api/{name}") for method in ("GET", "POST"))
    yield "GET", "files/x"


def main() -> None:
    """Serve until no client is left."""
    wanted = json.loads(sys.stdin.buffer.readline())
    os.set_inheritable(wanted["lock"], False)  # groups outlive this server, and must not keep its lock
    HeadlessServer.clients = open_lock("clients")
    HeadlessServer.answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # For all applications: an extension reads its own config files, which can contain settings of the server.
    setattr(JupyterApp, "config_file_paths", [])  # noqa: B010  (a property)
    app = HeadlessServer.instance(config=_config(wanted))
    app.initialize(argv=[], find_extensions=False)
    app.start()


def _config(wanted: dict[str, str]) -> Config:
    return Config(
        {
            # In the sections of the most specific classes, which take precedence.
            "HeadlessServer": {
                "jpserver_extensions": {"jupyter_dist": True},
                "ip": "127.0.0.1",
                "port": 0,
                "sock": "",
                "root_dir": wanted["root_dir"],
                "open_browser": False,
                "allow_root": True,
                "log_level": "ERROR",
                "identity_provider_class": OwnIdentityProvider,
                "authorizer_class": AllowAllAuthorizer,
                "allow_unauthenticated_access": False,
                "allow_remote_access": False,
                "disable_check_xsrf": False,
                "allow_origin": "",
                "allow_origin_pat": "",
                "base_url": "/",
                "certfile": "",
            },
            "DistApp": {"warm_environment": False},
            "OwnIdentityProvider": {"token": wanted["token"]},
        }
    )


if __name__ == "__main__":
    main()
