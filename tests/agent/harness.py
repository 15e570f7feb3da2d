"""A real agent process, and a blocking client that speaks docs/messaging.md to it."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import accused
from waits import PATIENCE, until

from jupyter_dist.journal.records.wide import each_rank
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.wire.changes import StatusReceiver
from jupyter_dist.protocol.wire.specs import PROTOCOL_VERSION, ExecutionSpec
from jupyter_dist.transport.frames import FrameDecoder, encode_frame, pack, unpack

from .forked import fork_agent

LEASE_SECONDS = 120.0  # of a group whose test run was killed
BOOT = Path(__file__).parents[2] / "jupyter_dist" / "agent" / "boot.py"


class AgentProcess:
    """`with AgentProcess(directory) as agent:`; ends it, and checks that nothing of it is left.

    It is forked from a process that has imported torch. With variables of its own, or if the test says
    `forked=False`, it is a new process, whose zygote imports torch.
    """

    def __init__(
        self,
        directory: Path,
        env: dict[str, str] | None = None,
        role: str = "agent",
        boot: Path = BOOT,
        log: Path | None = None,
        forked: bool = True,
    ) -> None:
        self.directory = directory
        directory.mkdir(mode=0o700)
        self.log = log or directory.with_suffix(".log")
        self.clients: list[AgentClient] = []
        is_usual = forked and not env and (role, boot) == ("agent", BOOT)
        with self.log.open("wb") as log:
            agent = fork_agent([sys.executable, str(boot)], directory, log.fileno()) if is_usual else None
            self.process = agent or subprocess.Popen(
                [sys.executable, str(boot), role, str(directory)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        self._session = os.getsid(self.process.pid)

    def __enter__(self) -> AgentClient:
        return self.client()

    def __exit__(self, *exc: object) -> None:
        for client in self.clients:
            client.close()
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait(PATIENCE)
        # What removes shared memory ends by itself, after those that used it.
        until(lambda: not self._left(), lambda: f"processes left: {self._left()}")
        assert not self.directory.exists(), sorted(self.directory.rglob("*"))

    def _left(self) -> list[int]:
        return [pid for pid, session in sessions().items() if session == self._session]

    def client(self) -> AgentClient:
        deadline = time.monotonic() + PATIENCE
        while not (self.directory / "agent.sock").exists():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, "no agent.sock"
            time.sleep(0.01)
        self.clients.append(AgentClient(self.directory / "agent.sock", self))
        return self.clients[-1]


def sessions() -> dict[int, int]:
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            found[int(name)] = int(fields[3])
    return found


class AgentClient:
    """What a server does, one thing at a time."""

    def __init__(self, path: Path, agent: AgentProcess) -> None:
        self.agent = agent
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(path))
        self.decoder = FrameDecoder()
        self.ids = itertools.count(1)
        self.inbox: list[tuple[dict, bytes]] = []
        self.records: list[tuple[dict, bytes]] = []
        self.seq = math.inf  # of the last record, once it follows
        self.group: dict = {}
        self.executions: dict[str, dict] = {}
        self.samples: list[dict] = []
        self.protocol = PROTOCOL_VERSION
        self.receiver = StatusReceiver()

    def close(self) -> None:
        self.sock.close()

    def request(self, t: str, payload: bytes = b"", timeout: float = PATIENCE, **fields) -> tuple[dict, bytes]:
        number = next(self.ids)
        header = {"t": t, "id": number}
        message = ({**header, **fields}, payload) if t == "hello" else pack(header, fields, payload)
        if t == "follow":
            self.seq = fields["since"]
        self.sock.sendall(encode_frame(*message))
        answers: list[tuple[dict, bytes]] = []

        def answered() -> bool:
            answers.extend(frame for frame in self.inbox if frame[0].get("id") == number)
            return bool(answers)

        self.wait(answered, timeout)
        header, data = answers[0]
        if not header["ok"]:
            raise JupyterDistError.from_dict(header["error"])
        return header, data

    def wait_closed(self) -> None:
        """Until the agent has another server."""
        with contextlib.suppress(EOFError, ConnectionError):
            self.wait(lambda: False, PATIENCE)

    def wait(self, condition, timeout: float = PATIENCE) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            self.sock.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                data = self.sock.recv(1 << 20)
            except TimeoutError:
                raise AssertionError(f"timed out; group {self.group}; {self.agent.log.read_text()[-2000:]}") from None
            if not data:
                raise EOFError(f"the agent ended; its group was {self.group}")
            for header, payload in self.decoder.feed(data):
                self._take(header, payload)

    def _take(self, header: dict, payload: bytes) -> None:
        header, payload = unpack(header, payload)
        kind = header["t"]
        if kind == "record":
            self.seq = header["seq"]
            self.records.extend(each_rank(header, payload))
        elif kind == "group_changed":
            self.group = self.receiver.status(header)
        elif kind == "execution":
            self.executions[header["execution"]["id"]] = accused.note(header["execution"])
        elif kind == "sample":
            self.samples.append(header["sample"])
        else:
            self.receiver = StatusReceiver() if "protocol" in header else self.receiver
            self.group = header.get("group", self.group)  # here, because a newer state may follow at once
            self.inbox.append((header, payload))

    # -- the usual steps ------------------------------------------------------------------------------

    def hello(self) -> dict:
        header, _ = self.request("hello", protocol=self.protocol, server="test")
        if self.group["state"] != "warm":
            listed, _ = self.request("executions", after=None)
            self.executions.update({execution["id"]: execution for execution in listed["executions"]})
        return header

    def start(self, world_size: int = 2, wait: bool = True, protocol: int = PROTOCOL_VERSION, **fields) -> None:
        self.protocol = protocol
        self.hello()
        spec = {
            "group_id": "g-test",
            "name": "test",
            "world_size": world_size,
            "accelerator": "cpu",
            "backend": "gloo",
            "cwd": str(self.agent.directory.parent),
            "lease_seconds": LEASE_SECONDS,
            **fields,
        }
        self.request("start", spec=spec)
        self.request("follow", since=0)
        if wait:
            self.wait_group("ready")

    def wait_group(self, *states: str, timeout: float = PATIENCE) -> None:
        self.wait(lambda: self.group.get("state") in states, timeout)

    def submit(self, code: str, ranks, **fields) -> str:
        execution_id = f"e-{uuid.uuid4().hex[:8]}"
        spec = {"execution_id": execution_id, "ranks": list(ranks), **fields}
        header, _ = self.request("execute", code.encode(), execution=spec)
        self.executions.setdefault(execution_id, header["execution"])
        return execution_id

    def transfer(self, action: str, folder: Path, ranks=(0, 1), name: str = "x") -> dict:
        """Save or restore all ranks."""
        wanted = {"action": action, "folder": str(folder), "name": name, "timeout_seconds": PATIENCE}
        execution_id = f"e-{uuid.uuid4().hex[:8]}"
        spec = ExecutionSpec(execution_id, list(ranks), silent=True).to_dict()
        header, _ = self.request("transfer", b"# transfer", execution={**spec, "transfer": wanted})
        self.executions.setdefault(execution_id, header["execution"])
        return self.ended(execution_id)

    def ended(self, execution_id: str, timeout: float = PATIENCE) -> dict:
        """Wait for its end, which may overtake records, and for all that was said before it."""
        self.wait_final(execution_id, timeout)
        self.wait(lambda: self.seq >= (self.executions[execution_id]["end_seq"] or 0), timeout)
        return self.executions[execution_id]

    def wait_final(self, execution_id: str, timeout: float = PATIENCE) -> None:
        final = {"ok", "error", "interrupted", "aborted", "lost"}
        self.wait(lambda: self.executions[execution_id]["state"] in final, timeout)

    def run(self, code: str, ranks=(0, 1), timeout: float = PATIENCE, **fields) -> dict:
        return self.ended(self.submit(code, ranks, **fields), timeout)

    def text(self, rank: int, execution_id: str | None = None, name: str = "stdout") -> str:
        wanted = {"rank": rank, "kind": "stream", "name": name}
        if execution_id is not None:
            wanted["execution_id"] = execution_id
        return b"".join(p for h, p in self.records if wanted.items() <= h.items()).decode()

    def kill_rank(self, rank: int, sig: signal.Signals = signal.SIGKILL) -> None:
        os.kill(self.group["ranks"][rank]["pid"], sig)
