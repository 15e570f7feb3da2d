"""What the agent does with ranks: a real zygote that forks them, spoken to over real sockets."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from waits import PATIENCE

import jupyter_dist.agent.boot as boot
from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.rank.start.preload import OPTIONAL
from jupyter_dist.system.inherited import without_threads
from jupyter_dist.transport.frames import FrameDecoder, Header, encode_frame


class ZygoteClient:
    """Starts ranks; knows how they ended."""

    def __init__(self, modules: tuple[str, ...] = (), **env: str) -> None:
        self._sock, child = socket.socketpair()
        self._decoder = FrameDecoder()
        self._messages: list[Header] = []
        self._ids = itertools.count(1)
        with child:
            self._process = subprocess.Popen(
                [sys.executable, boot.__file__, "zygote", str(child.fileno())],
                pass_fds=[child.fileno()],
                stdin=subprocess.DEVNULL,
                env={
                    **os.environ,
                    **without_threads(os.environ),
                    "JUPYTER_DIST_AGENT_PID": str(os.getpid()),
                    "JUPYTER_DIST_OPTIONAL_PRELOAD": ",".join(OPTIONAL),
                    **env,
                },
            )
        self._sock.sendall(encode_frame({"t": "preload", "modules": list(modules)}))
        self.warm = self.wait("warm")

    def fork(self, spec: RankSpec, fds: list[int]) -> int:
        number = next(self._ids)
        socket.send_fds(self._sock, [encode_frame({"t": "fork", "id": number, "spec": spec.to_dict()})], fds)
        return int(self.wait("forked", id=number)["pid"])

    def wait(self, kind: str, **fields: Any) -> Header:
        self._sock.settimeout(PATIENCE)
        while True:
            for message in self._messages:
                if message["t"] == kind and all(message[name] == value for name, value in fields.items()):
                    self._messages.remove(message)
                    return message
            data = self._sock.recv(1 << 16)
            assert data, "the zygote ended"
            for header, payload in self._decoder.feed(data):
                assert header["t"] != "failed", payload.decode()
                self._messages.append(header)

    def close(self) -> None:
        self._sock.close()
        self._process.wait(PATIENCE)


@dataclass
class Result:
    """What one cell said, in order."""

    reply: Header
    events: list[tuple[str, Any]] = field(default_factory=list)  # (stream name or message type, text or content)

    @property
    def status(self) -> str:
        return str(self.reply["status"])

    def text(self, name: str = "stdout") -> str:
        return b"".join(data for kind, data in self.events if kind == name).decode("utf-8", "surrogateescape")

    def outputs(self, kind: str) -> list[dict[str, Any]]:
        return [content for event, content in self.events if event == kind]

    @property
    def error(self) -> dict[str, Any]:
        (content,) = self.outputs("error")
        return content

    @property
    def traceback(self) -> str:
        return "\n".join(self.error["traceback"])


class RankClient:
    """One rank, seen from where its agent would be."""

    def __init__(self, zygote: ZygoteClient, spec: RankSpec) -> None:
        self.spec = spec
        self._zygote = zygote
        self._sock, channel = socket.socketpair()
        self._pipes = {}
        ends = [channel.fileno()]
        for name in ("stdout", "stderr"):
            read_end, write_end = os.pipe()
            os.set_blocking(read_end, False)
            self._pipes[read_end] = name
            ends.append(write_end)
        self.pid = zygote.fork(spec, ends)
        channel.close()
        for end in ends[1:]:
            os.close(end)
        self._decoder = FrameDecoder()
        self._ids = itertools.count(1)
        self._counts = itertools.count(1)
        self._text = {"stdout": bytearray(), "stderr": bytearray()}
        self.frames: list[tuple[Header, bytes]] = []
        self.events: list[tuple[str | None, str, Any]] = []  # execution id, kind, text or content

    # -- what a test asks ---------------------------------------------------------------------------

    def run(self, code: str, timeout: float = PATIENCE, **options: Any) -> Result:
        return self.result(self.start(code, **options), timeout)

    def start(
        self,
        code: str,
        silent: bool = False,
        empty_cache: bool = False,
        allow_stdin: bool = False,
    ) -> str:
        count = next(self._counts)
        execution_id = f"e{count}"
        options: dict[str, Any] = {"silent": silent, "empty_cache": empty_cache, "allow_stdin": allow_stdin}
        header = {"t": "execute", "execution_id": execution_id, "execution_count": count, **options}
        self.send(header, code.encode("utf-8", "surrogatepass"))
        return execution_id

    def result(self, execution_id: str, timeout: float = PATIENCE) -> Result:
        reply = self.wait_for("reply", timeout, execution_id=execution_id)
        return Result(reply, [(kind, data) for owner, kind, data in self.events if owner == execution_id])

    def interrupt(self, execution_id: str) -> None:
        self.send({"t": "interrupt", "execution_id": execution_id})

    def text_of_all(self, name: str = "stdout") -> str:
        """Return what the rank has written so far, in any cell and between cells."""
        return self._text[name].decode("utf-8", "surrogateescape")

    def asked(self, execution_id: str, nth: int = 1) -> dict[str, Any]:
        """Wait until the cell asks for input, for the nth time; return the question with its number."""

        def found() -> Any:
            mine = [f for f in self.frames if f[0]["t"] == "from_rank" and f[0]["execution_id"] == execution_id]
            asked = [{**json.loads(content), "number": h["number"]} for h, content in mine if h["kind"] == "input"]
            return asked[nth - 1] if len(asked) >= nth else None

        return dict(self._until(found, PATIENCE))

    def reply_to(self, question: dict[str, Any], text: str | None) -> None:
        """Answer a question."""
        header = {"t": "to_rank", "kind": "input", "number": question["number"]}
        self.send(header, json.dumps({"text": text}).encode())

    def ask(self, kind: str, timeout: float = PATIENCE, **fields: Any) -> Header:
        return self.answer(self.post(kind, **fields), timeout)

    def post(self, kind: str, payload: bytes = b"", **fields: Any) -> int:
        number = next(self._ids)
        self.send({"t": kind, "id": number, **fields}, payload)
        return number

    def post_rejoin(self, store: Path | str) -> int:
        """Ask for a new process group over this store, in the place that the rank has."""
        names = ("rank", "local_rank", "world_size", "local_world_size", "node", "shape", "env")
        place = {**{name: getattr(self.spec, name) for name in names}, "places": {}}
        return self.post("rejoin", json.dumps(place).encode(), store_path=str(store))

    def answer(self, number: int, timeout: float = PATIENCE) -> Header:
        return self.wait_for("answer", timeout, id=number)

    def wait_text(self, text: str, name: str = "stdout") -> None:
        """Wait until the rank has written `text`."""
        self._until(lambda: text.encode() in self._text[name], PATIENCE)

    def wait_for(self, kind: str, timeout: float = PATIENCE, **fields: Any) -> Header:
        def found() -> Header | None:
            for header, _ in self.frames:
                if header["t"] == kind and all(header[name] == value for name, value in fields.items()):
                    return header
            return None

        return self._until(found, timeout)

    def ready(self) -> RankClient:
        self.wait_for("ready")
        return self

    def exit(self) -> Header:
        """Wait for the process's end; return the zygote's report."""
        return self._zygote.wait("exited", pid=self.pid)

    def close(self) -> None:
        for fd in self._pipes:
            os.close(fd)
        self._sock.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    # -- the agent's part ---------------------------------------------------------------------------

    def send(self, header: Header, payload: bytes = b"") -> None:
        self._sock.setblocking(True)
        self._sock.sendall(encode_frame(header, payload))

    def _until(self, condition: Callable[[], Any], timeout: float) -> Any:
        deadline = time.monotonic() + timeout
        while not (found := condition()):
            left = deadline - time.monotonic()
            assert left > 0, f"timed out; got {self.events[-20:]} {[h for h, _ in self.frames][-5:]}"
            try:
                self.pump(left)
            except EOFError:  # with its last output, which may be what this waits for
                if not condition():
                    raise
        return found

    def pump(self, timeout: float) -> None:
        """Take what has come, as the agent does: pipes before frames."""
        readable, _, _ = select.select([self._sock, *self._pipes], [], [], timeout)
        if self._sock not in readable:
            self._drain_pipes()
            return
        self._sock.setblocking(False)
        data = self._sock.recv(1 << 20)
        if not data:
            self._drain_pipes()
            raise EOFError(f"the rank closed its channel: {self.events[-5:]}, {self.frames[-3:]}")
        for header, payload in self._decoder.feed(data):
            self._drain_pipes()
            self._on_frame(header, payload)

    def _on_frame(self, header: Header, payload: bytes) -> None:
        if header["t"] == "stream":
            self._text[header["name"]] += payload
            self.events.append((header["execution_id"], header["name"], payload))
        elif header["t"] == "output":
            self.events.append((header["execution_id"], header["msg_type"], json.loads(payload)))
        elif header["t"] == "sync":
            self.send({"t": "synced", "id": header["id"]})
        else:
            if number := header.get("json"):  # the fields of an answer come before its payload
                header, payload = {**header, **json.loads(payload[:number])}, payload[number:]
            self.frames.append((header, payload))

    def _drain_pipes(self) -> None:
        last = self.events[-1][0] if self.events else None
        for fd, name in list(self._pipes.items()):
            try:
                while data := os.read(fd, 1 << 16):
                    self._text[name] += data
                    self.events.append((self.running or last, name, data))
                del self._pipes[fd]
                os.close(fd)
            except BlockingIOError:
                pass

    @property
    def running(self) -> str | None:
        replied = {header["execution_id"] for header, _ in self.frames if header["t"] == "reply"}
        started = [f"e{number}" for number in range(1, self._peek())]
        return next((name for name in reversed(started) if name not in replied), None)

    def _peek(self) -> int:
        return int(repr(self._counts)[6:-1])


def make_spec(store: Path, rank: int = 0, world_size: int = 1, **changes: Any) -> RankSpec:
    fields: dict[str, Any] = {
        "group_id": "g",
        "group_name": "test",
        "rank": rank,
        "local_rank": rank,
        "world_size": world_size,
        "local_world_size": world_size,
        "accelerator": "cpu",
        "backend": "gloo",
        "device": "cpu",
        "cwd": str(store.parent),
        "store_path": str(store),
        "generation": 1,
        "env": {
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1",
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        },
    }
    return RankSpec(**{**fields, **changes})
