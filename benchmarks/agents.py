"""An agent without a server: for what the agent alone costs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from itertools import starmap
from pathlib import Path
from typing import Any

from jupyter_dist.protocol.states import FINAL_EXECUTION_STATES
from jupyter_dist.protocol.wire.specs import PROTOCOL_VERSION, ExecutionSpec, GroupSpec
from jupyter_dist.transport.frames import FrameDecoder, Header, encode_frame, unpack

from .driver import REPOSITORY
from .processes import descendants, kill, wait_until

Message = tuple[Header, bytes]


class Agent:
    """One agent process with a group of CPU ranks, and a blocking connection to it."""

    def __init__(self, ranks: int) -> None:
        self._ranks = list(range(ranks))
        self._directory = tempfile.TemporaryDirectory(prefix="jdb-", ignore_cleanup_errors=True)
        self._decoder = FrameDecoder()
        self._messages: list[Message] = []
        self._ids = 0

    def __enter__(self) -> Agent:
        path = Path(self._directory.name, "group")
        path.mkdir(mode=0o700)
        boot = REPOSITORY / "jupyter_dist" / "agent" / "boot.py"
        log = Path(self._directory.name, "log").open("wb")
        with log:
            command = [sys.executable, str(boot), "agent", str(path)]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait_until((path / "agent.sock").exists, 20, "the agent listens")
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(str(path / "agent.sock"))
            self._start(path)
        except BaseException:
            print(Path(log.name).read_text(errors="replace")[-2000:], file=sys.stderr)
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @property
    def named(self) -> dict[str, list[int]]:
        """The processes by what they are."""
        below = [pid for pid in descendants(self.process.pid) if pid != self._zygote]
        return {"agent": [self.process.pid], "ranks": below}

    def processes(self) -> list[int]:
        """The agent and its ranks."""
        return [pid for pids in self.named.values() for pid in pids]

    def cell(self, code: str, seconds: float = 30.0) -> Header:
        """Run a cell on all ranks; return the final `execution`."""
        execution_id = f"e-{uuid.uuid4().hex}"
        spec = ExecutionSpec(execution_id=execution_id, ranks=self._ranks)
        self._request("execute", code.encode(), execution=spec.to_dict())
        return self._wait(
            lambda header: (
                header["t"] == "execution"
                and header["execution"]["id"] == execution_id
                and header["execution"]["state"] in FINAL_EXECUTION_STATES
            ),
            seconds,
        )["execution"]

    def _start(self, path: Path) -> None:
        self._socket.settimeout(60)
        wait_until(lambda: len(descendants(self.process.pid)) > 0, 20, "the zygote starts")
        self._zygote = descendants(self.process.pid)[0]
        self._request("hello", protocol=PROTOCOL_VERSION, server="benchmark")
        spec = GroupSpec("g-bench", "bench", len(self._ranks), "cpu", "gloo", str(path.parent))
        self._request("start", spec=spec.to_dict(), environment={})
        states = ("starting", None)  # None: the state is as before
        header = self._wait(
            lambda header: header["t"] == "group_changed" and header["fields"].get("state") not in states, 60
        )
        if header["fields"]["state"] != "ready":
            raise RuntimeError(f"the group is {header['fields']['state']}: {header['fields'].get('error')}")
        self._request("follow", since=0)

    def _request(self, kind: str, payload: bytes = b"", **fields: Any) -> None:
        self._ids += 1
        self._socket.sendall(encode_frame({"t": kind, "id": self._ids, **fields}, payload))

    def _wait(self, wanted: Callable[[Header], bool], seconds: float) -> Header:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            while self._messages:
                header, _ = self._messages.pop(0)
                if header.get("ok") is False:
                    raise RuntimeError(f"the agent said: {header['error']}")
                if wanted(header):
                    return header
            data = self._socket.recv(1 << 16)
            if not data:
                raise RuntimeError("the agent closed the connection")
            self._messages.extend(starmap(unpack, self._decoder.feed(data)))
        raise TimeoutError(f"the agent did not answer within {seconds:g} s")

    def _close(self) -> None:
        if hasattr(self, "_socket"):
            self._socket.close()
        below = descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        kill([pid for pid in below if os.path.exists(f"/proc/{pid}")])
        self._directory.cleanup()
