"""A real `jupyter server` in a process of its own, and blocking clients for HTTP and the WebSocket."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import accused
from answers import check_answer, check_message
from leaks import children_of, forkservers
from libraries import LIGHT, preloading
from waits import PATIENCE

from jupyter_dist.client.servers.private import PREPARE_VARIABLE
from jupyter_dist.server.spawner.directories import groups_directory
from jupyter_dist.server.spawner.forkservers import FOLDER_VARIABLE
from jupyter_dist.system.code.copies import remove_unused
from jupyter_dist.system.processes import read_process

TOKEN = "a-token-that-must-be-seen-nowhere"
# What JupyterLab and its friends bring along takes longer to load than the rest of the server.
OTHERS = (
    "jupyterlab",
    "jupyter_lsp",
    "jupyter_server_fileid",
    "jupyter_server_nbmodel",
    "jupyter_server_terminals",
    "jupyter_server_ydoc",
    "notebook",
    "notebook_shim",
)


FORKSERVER_SECONDS = 900.0  # until the next test that starts a group with it; it ends with the test run
REPOSITORY = str(Path(__file__).parents[2])


EARLIER = Path(__file__).parent / "earlier" / "jupyter_dist-0.2.0.tar.xz"


def shared_home() -> Path:
    """The home of all servers of a test run: groups with different environments share no import of torch."""
    home = Path(os.environ[FOLDER_VARIABLE]).with_name("home")
    home.mkdir(exist_ok=True)
    return home


class JupyterServer:
    """`home` is where it and the servers after it keep everything; `options` are DistApp's."""

    is_of_this_version = True  # so its answers have the types of this version

    def __init__(
        self,
        home: Path,
        env: dict[str, str] | None = None,
        runtime: Path | None = None,
        extensions: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        self.home = home
        self.runtime = runtime or home / "runtime"
        self.log_path = home / "server.log"
        # Groups of all tests share an import of torch, unless this server is unlike others.
        modules = [str(home)] if "preload_modules" in options else []
        linger = {} if env or modules else {"forkserver_seconds": FORKSERVER_SECONDS}
        traits = {"warm_environment": False, "on_server_stop": "keep", "lease_seconds": 60, **linger, **options}
        command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--port=0", "--allow-root"]
        enabled = {**dict.fromkeys(OTHERS, False), **dict.fromkeys(("jupyter_dist", *extensions), True)}
        command += [f"--ServerApp.root_dir={home}", f"--ServerApp.jpserver_extensions={enabled}"]
        command += [f"--DistApp.{name}={value}" for name, value in traits.items()]
        known = set(self.runtime.glob("jpserver-*.json"))
        environment = {
            **{name: value for name, value in os.environ.items() if name != PREPARE_VARIABLE},  # it is for clients
            **preloading(LIGHT),
            "HOME": str(shared_home()),
            "JUPYTER_RUNTIME_DIR": str(self.runtime),
            "JUPYTER_CONFIG_DIR": str(home / "config"),
            "JUPYTER_TOKEN": TOKEN,
            "PYTHONPATH": os.pathsep.join([REPOSITORY, *modules]),
            **(env or {}),
        }
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=home
            )
        try:
            self._wait(known)
        except BaseException:
            self.process.kill()
            self.process.wait(PATIENCE)
            raise

    def _wait(self, known: set[Path]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not (new := set(self.runtime.glob("jpserver-*.json")) - known):
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)
        self.info_path = new.pop()
        while not self.info_path.read_text().endswith("}"):
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.005)
        self.info = json.loads(self.info_path.read_text())
        while True:  # the file is there before it listens
            try:
                self.ask("GET", "")
                return
            except urllib.error.URLError:
                assert time.monotonic() < deadline, self.log()
                time.sleep(0.02)

    def log(self) -> str:
        return self.log_path.read_text()

    def end(self, sig: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(sig)
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            with contextlib.suppress(FileNotFoundError):
                self.info_path.unlink()
            with contextlib.suppress(
                OSError
            ):  # outside of our home, where its path is too long; kept while groups live
                parent = groups_directory(str(self.runtime))
                remove_unused(parent.with_name(f"{parent.name}-code"))  # a killed server does not
                parent.rmdir()

    def ask(self, method: str, path: str, body: Any = None, token: str | None = TOKEN, key: str | None = None) -> Any:
        headers = {"Authorization": f"token {token}"} if token else {}
        if key is not None:
            headers["Idempotency-Key"] = key
        data = json.dumps(body or {}).encode() if method == "POST" else None
        url = f"{self.info['url']}jupyter-dist/api/{path}"
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=2 * PATIENCE) as response:
                content = response.read()
        except urllib.error.HTTPError as err:
            with err:
                content = err.read()
            # A test that does not expect the refusal shows its reason.
            text = f"{err.msg}: {content.decode(errors='replace')[:1000]}"
            raise urllib.error.HTTPError(url, err.code, text, err.headers, io.BytesIO(content)) from None
        if not content.startswith(b"{"):
            return content
        answer = json.loads(content)
        if self.is_of_this_version:
            check_answer(method, path, response.status, answer)
        return answer

    def refused(self, *arguments: Any, **options: Any) -> tuple[int, Any]:
        try:
            answer = self.ask(*arguments, **options)
        except urllib.error.HTTPError as err:
            with err:
                return err.code, json.loads(err.read())["error"]
        raise AssertionError(answer)

    def start(self, num_ranks: int = 2, **fields: Any) -> dict[str, Any]:
        group = self.ask("POST", "groups", {"num_ranks": num_ranks, **fields})
        group = self.ask("GET", f"groups/{group['id']}?wait={PATIENCE}&not_state=starting")
        assert group["state"] == "ready", group
        return group

    def submit(self, group: str, code: str, ranks: str = "all", **fields: Any) -> str:
        return self.ask("POST", f"groups/{group}/executions", {"code": code, "ranks": ranks, **fields})["id"]

    def view(self, group: str, execution: str, wait: float = PATIENCE) -> dict[str, Any]:
        view = self.ask("GET", f"groups/{group}/executions/{execution}?wait={wait}")
        accused.note(view["execution"])
        return view

    def run(self, group: str, code: str, ranks: str = "all") -> dict[str, Any]:
        return self.view(group, self.submit(group, code, ranks))

    def download(self, group: str, rank: int) -> str:
        return self.ask("GET", f"groups/{group}/ranks/{rank}/log/download").decode()

    def channel(self) -> Channel:
        return Channel(self.info["port"])

    def group_folder(self, group_id: str) -> Path:
        (path,) = (
            *self.runtime.rglob(f"{group_id}/group.json"),
            *Path("/tmp").glob(f"jupyter_dist-*/{group_id}/group.json"),
        )
        return path.parent

    def tree(self) -> list[int]:
        """The server, its groups, and the forkservers of this test run, which are not below it."""
        above = set(forkservers())
        for group in self.ask("GET", "groups")["groups"]:
            above.add(read_process(self.agent_pid(group["id"])).parent)  # its keeper
        roots = [self.process.pid, *above - children_of(self.process.pid).keys()]
        return [pid for root in roots for pid in (root, *children_of(root))]

    def agent_pid(self, group_id: str) -> int:
        return int(json.loads((self.group_folder(group_id) / "group.json").read_text())["agent_pid"])


class Channel:
    """The WebSocket, by hand: so that a client can be as slow or as broken as a test wants."""

    def __init__(self, port: int, token: str = TOKEN) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock.sendall(
            f"GET /jupyter-dist/api/channel HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            f"Authorization: token {token}\r\n\r\n".encode()
        )
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.sock.recv(1)
        assert b" 101 " in head.split(b"\r\n")[0], head

    def send(self, data: bytes | dict[str, Any], opcode: int = 1) -> None:
        payload = data if isinstance(data, bytes) else json.dumps(data).encode()
        if len(payload) < 126:
            length = struct.pack("!B", 0x80 | len(payload))
        else:
            length = struct.pack("!BQ", 0x80 | 127, len(payload))
        self.sock.sendall(bytes([0x80 | opcode]) + length + b"\0\0\0\0" + payload)

    def next(self) -> dict[str, Any] | None:
        """The next message; None when the server closed."""
        while True:
            first, length = self._exactly(2)
            if length & 127 == 126:
                (length,) = struct.unpack("!H", self._exactly(2))
            elif length & 127 == 127:
                (length,) = struct.unpack("!Q", self._exactly(8))
            payload = self._exactly(length)
            if first & 15 == 8:
                return None
            if first & 15 == 1:
                message = json.loads(payload)
                check_message(message, length)
                return message

    def next_of(self, kind: str) -> dict[str, Any]:
        while (message := self.next()) is not None:
            if message["type"] == kind:
                return message
        raise EOFError

    def close(self) -> None:
        self.sock.close()

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.sock.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return bytes(data)


class EarlierServer(JupyterServer):
    """A server of 0.2, whose answers are those of its own version."""

    is_of_this_version = False

    def __init__(self, home: Path, env: dict[str, str] | None = None, **options: Any) -> None:
        with tarfile.open(EARLIER) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 has it
            archive.extractall(home / "earlier")
        super().__init__(home, env={**(env or {}), "PYTHONPATH": str(home / "earlier")}, **options)
