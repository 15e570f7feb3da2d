"""Us, as a user has us: a Jupyter server in a process of its own, asked by REST and WebSocket only."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import websocket

from .driver import REPOSITORY
from .processes import command_line, cpu_seconds, descendants, kill, resident_bytes, scheduled_seconds, wait_until

API = "/jupyter-dist/api"
FINAL = frozenset({"ok", "error", "interrupted", "aborted", "lost"})
LISTEN_SECONDS = 60.0
# Others may be installed for tests; a notebook that is shared by collaboration does much more.
EXTENSIONS = {"jupyter_dist": True, **dict.fromkeys(("jupyter_server_ydoc", "jupyter_server_fileid"), False)}
Json = dict[str, Any]


class Server:
    """A Jupyter server with our extension; its agents and ranks end with it."""

    def __init__(self, application: str = "jupyter_server") -> None:
        self._application = application
        self._directory = tempfile.TemporaryDirectory(prefix="jdb-", ignore_cleanup_errors=True)
        self.home = Path(self._directory.name)
        self.token = secrets.token_hex(16)
        self.port = _free_port()
        self._agents: set[int] = set()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        trees = {pid: descendants(pid) for pid in (self.pid, *self.agents())}
        self.process.kill()
        self.process.wait()
        kill([member for pid, below in trees.items() for member in (pid, *below)])
        self._directory.cleanup()

    def start(self) -> None:
        """Start the process and wait until it answers; also after a kill, in the same folders."""
        with (self.home / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment()
            )
        try:
            wait_until(self._answers, LISTEN_SECONDS, "the server answers")
        except BaseException:
            self.process.kill()
            print((self.home / "server.log").read_text(errors="replace")[-4000:], file=sys.stderr)
            raise

    def kill_and_restart(self) -> None:
        """Kill the server, not its groups; return when the next one answers in its place."""
        self.process.kill()
        self.process.wait()
        self.start()

    @property
    def pid(self) -> int:
        """The server's process."""
        return self.process.pid

    def agents(self) -> list[int]:
        """The agent processes that this server started, warm ones and those of groups."""
        commands = {pid: command_line(pid) for pid in descendants(os.getpid())}
        return [pid for pid, command in commands.items() if f"boot.py agent {self.home}" in command]

    def agent_of(self, group: str) -> int:
        """The agent of a group."""
        return next(pid for pid in self.agents() if command_line(pid).endswith(group))

    def journal_of(self, group: str) -> Path:
        """Where a group's journal is; its folder's path is what its agent was started with."""
        return Path(command_line(self.agent_of(group)).split()[-1]) / "journal"

    def cpu_seconds(self) -> float:
        """CPU used so far by the server, its agents and their ranks."""
        return cpu_seconds([self.pid, *self.agents()])

    def wait_for_warm_agent(self, spare: int = 1) -> None:
        """Wait until this many agents have a zygote that imported everything, and nothing works any more."""
        wait_until(lambda: self._spare_zygotes() >= spare, 90, "a warm agent", 0.1)

    def _spare_zygotes(self) -> int:
        warm = 0
        for agent in self.agents():
            below = descendants(agent)
            if len(below) == 1 and " zygote " in command_line(below[0]):
                before = scheduled_seconds(below[0])
                time.sleep(0.3)
                has_torch = resident_bytes(below[0]) > 100 << 20  # by an import of its own, or of a forkserver
                warm += has_torch and scheduled_seconds(below[0]) - before < 0.002
        return warm

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError("the server ended")
        try:
            return Client(self).get("/")[0] == 200
        except OSError:
            return False

    def _command(self) -> list[str]:
        return [
            *(sys.executable, "-m", self._application),
            *(f"--ServerApp.port={self.port}", "--ServerApp.port_retries=0", "--ServerApp.ip=127.0.0.1"),
            *(f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={self.home}", "--allow-root"),
            *(["--LabApp.expose_app_in_browser=True"] if self._application == "jupyterlab" else []),
            *("--no-browser", f"--ServerApp.jpserver_extensions={EXTENSIONS}"),
        ]

    def _environment(self) -> dict[str, str]:
        own = {f"JUPYTER_{name}_DIR": str(self.home / name.lower()) for name in ("RUNTIME", "CONFIG", "DATA")}
        path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
        return {**os.environ, **own, "PYTHONPATH": path, "IPYTHONDIR": str(self.home / "ipython")}


class Client:
    """REST on one kept connection, and the page's WebSocket."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._headers = {"Authorization": f"token {server.token}", "Content-Type": "application/json"}
        self.received_bytes = 0
        self._http = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def open_channel(self) -> None:
        """Connect, again if it was connected, and follow all groups, as our pages do."""
        if hasattr(self, "_channel"):
            self._channel.close()
        url = f"ws://127.0.0.1:{self._server.port}{API}/channel"
        headers = [f"Authorization: token {self._server.token}"]
        self._channel = websocket.create_connection(url, header=headers, timeout=60)
        self.subscribe("groups", by_field=True)
        self.receive(lambda message: message["type"] == "changes")

    def close(self) -> None:
        """Close both. Idempotent."""
        self._http.close()
        if hasattr(self, "_channel"):
            self._channel.close()

    def get(self, path: str) -> tuple[int, Any]:
        """GET, and the parsed body."""
        return self.request("GET", path)

    def request(self, method: str, path: str, body: Json | None = None) -> tuple[int, Any]:
        """Ask; returns the status and the parsed body."""
        content = None if body is None else json.dumps(body)
        self._http.request(method, API + path, content, self._headers)
        response = self._http.getresponse()
        data = response.read()
        return response.status, json.loads(data) if data else None

    def must(self, method: str, path: str, body: Json | None = None) -> Any:
        """Ask; raises RuntimeError with the server's own words on any error."""
        status, answer = self.request(method, path, body)
        if status >= 400:
            raise RuntimeError(f"{method} {path}: {status} {answer}")
        return answer

    def receive(self, wanted: Any, seconds: float = 60.0) -> Json:
        """Return the first message on the channel that is wanted; the others are dropped."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            data = self._channel.recv()
            self.received_bytes += len(data)
            message: Json = json.loads(data)
            if wanted(message):
                return message
        raise TimeoutError(f"no such message within {seconds:g} s")

    def subscribe(self, topic: str, **keys: Any) -> None:
        """Follow something."""
        self._channel.send(json.dumps({"type": "subscribe", "topic": topic, **keys}))

    def unsubscribe(self, topic: str, **keys: Any) -> None:
        """Do not follow it any more."""
        self._channel.send(json.dumps({"type": "unsubscribe", "topic": topic, **keys}))

    def start_group(self, ranks: int, name: str = "bench") -> Json:
        """Ask for a group of CPU ranks; it is still starting when this returns."""
        group: Json = self.must("POST", "/groups", {"name": name, "accelerator": "cpu", "num_ranks": ranks})
        return group

    def wait_ready(self, group: str) -> Json:
        """Wait until a group has left `starting` and `restarting`."""
        for state in ("starting", "restarting"):
            answer: Json = self.must("GET", f"/groups/{group}?wait=30&not_state={state}")
        if answer["state"] != "ready":
            raise RuntimeError(f"group {group} is {answer['state']}: {answer['error']}")
        return answer

    def end_group(self, group: str) -> None:
        """Shut a group down, until nothing is left."""
        self.must("DELETE", f"/groups/{group}")

    def cell(self, group: str, code: str, seconds: float = 60.0) -> Json:
        """Run a cell on all ranks; return the execution as the channel tells its end."""
        execution: Json = self.must("POST", f"/groups/{group}/executions", {"code": code})
        topic = {"group": execution["group"], "execution": execution["id"]}
        self.subscribe("execution", since=0, **topic)
        ended = self.receive(
            lambda message: (
                message["type"] == "execution"
                and message["execution"]["id"] == execution["id"]
                and message["execution"]["state"] in FINAL
            ),
            seconds,
        )["execution"]
        self.unsubscribe("execution", **topic)
        if ended["state"] != "ok":
            raise RuntimeError(f"the cell ended with {ended['state']}: {ended['error']}")
        return ended


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
