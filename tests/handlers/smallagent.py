"""An agent without ranks: the real link and journal, and one cell that runs. It may fail once.

`python smallagent.py REQUEST FAILURE agent FOLDER`: the first REQUEST (`REQUEST:2`: the second) gets no answer (FAILURE
`silent`), or an error with that code. What it was asked is in the file `asked`, a line each, with the seconds of a `watch`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from jupyter_dist.agent.contact.server_link import ServerLink, answer
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.wire.changes import StatusSender
from jupyter_dist.protocol.wire.specs import PROTOCOL_VERSION

EXECUTION = {
    "id": "e-small",
    "ranks": "0",
    "state": "running",
    "line": "code",
    "code_checksum": "00000000",
    "cell_id": None,
    "notebook": None,
    "owner": None,
    "execution_count": 1,
    "queued_at": 1.0,
    "started_at": 1.0,
    "ended_at": None,
    "statuses": [{"ranks": "0", "status": "running", "seconds": None}],
    "rank_seconds": {},
    "silent": False,
    "error": None,
    "waits_for": None,
    "begin_seq": 1,
    "end_seq": None,
}
SPEC = {"name": "small", "world_size": 1, "accelerator": "cpu", "backend": "gloo", "devices": [], "cwd": "/"}


class SmallAgent:
    """Starts one in a process; `with SmallAgent(folder, ...)`."""

    def __init__(self, folder: Path, request: str, failure: str) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700)
        (folder / "asked").touch()
        self._command = [sys.executable, __file__, request, failure, "agent", str(folder)]
        self._env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    def __enter__(self) -> SmallAgent:
        self.process = subprocess.Popen(self._command, env=self._env, stdin=subprocess.PIPE)
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()

    @property
    def is_ready(self) -> bool:
        """Whether it can be connected to."""
        return (self._folder / "agent.sock").exists()

    def asked(self, request: str) -> int:
        """How often it was asked that."""
        return (self._folder / "asked").read_text().split().count(request)

    def watched(self) -> list[str]:
        """The seconds of each `watch` that it was asked for."""
        lines = (self._folder / "asked").read_text().splitlines()
        return [line.partition(" ")[2] for line in lines if line.startswith("watch ")]

    def notes(self, text: str, sends: bool = True) -> None:
        """Have the group show a note; its message fails unless it `sends`."""
        self.prints(f"{'note' if sends else 'unsent'}: {text}")

    def prints(self, text: str) -> None:
        """Have the cell print a line."""
        self.process.stdin.write(f"{text}\n".encode())
        self.process.stdin.flush()


class Status:
    """The group's status, which changes in its note."""

    def __init__(self, seq: Callable[[], int]) -> None:
        self.note: str | None = None
        self._seq = seq
        self._sender = StatusSender()

    def left(self) -> None:
        self._sender = StatusSender()

    def whole(self) -> dict:
        status = {"state": "ready", "spec": SPEC, "generation": 1, "ranks": [], "started_at": 1.0, "note": self.note}
        return {**status, "seq": self._seq(), "agent_pid": os.getpid(), "lease_seconds": 60.0}

    def change(self) -> dict:
        return self._sender.message(self.whole())

    def unsent(self) -> dict:
        return {**self.change(), "note": object()}  # which is no JSON


async def serve(failing: str, failure: str, folder: Path) -> None:
    request, _, number = failing.partition(":")

    class FailingLink(ServerLink):
        """Fails once, whatever it is that is asked."""

        asked = 0

        async def _handle(self, stream, header, payload):
            with (folder / "asked").open("a") as file:
                print(header["t"], *([f"{header['seconds']:g}"] if "seconds" in header else []), file=file)
            self.asked += header["t"] == request
            if header["t"] == request and self.asked == int(number or 1):
                if failure == "silent":
                    await asyncio.Event().wait()
                raise JupyterDistError(failure, "This time it fails.")
            return await super()._handle(stream, header, payload)

    status = Status(lambda: journal.last_seq)
    answers = {
        "hello": lambda: answer(protocol=PROTOCOL_VERSION, group=status.whole(), seq=journal.last_seq),
        "executions": lambda: answer(executions=[EXECUTION], more=False),
        "comms": lambda: answer(comms=[], seq=0),
        **dict.fromkeys(("ping", "watch"), answer),
    }

    def handler(make):
        async def handle(_header, _payload):
            return make()

        return handle

    link = FailingLink(folder / "agent.sock", {name: handler(make) for name, make in answers.items()}, status.left)
    journal = JournalWriter(folder / "journal", link.records_grew)
    journal.append("begin", b"code", execution_id="e-small", ranks="0", execution_count=1)
    link.use_journal(journal)
    await link.listen()
    while line := await asyncio.to_thread(sys.stdin.buffer.readline):
        kind, _, text = line.decode().strip().partition(": ")
        if kind in ("note", "unsent"):
            status.note = text
            link.push("group", "group_changed", status.change if kind == "note" else status.unsent, at_once=True)
            continue
        journal.append("stream", line, execution_id="e-small", rank=0, name="stdout")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(sys.argv[1], sys.argv[2], Path(sys.argv[4])))
