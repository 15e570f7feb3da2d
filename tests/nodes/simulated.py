"""Many nodes in one process: real node agents, whose ranks are objects that answer like a rank's process.

What is real: the node agents (jupyter_dist/agent/nodes/member.py), the encrypted link, each rank's channel and pipes, and
the code of cells, which Python runs here. What is simulated: the processes. Ranks have no torch and no process group.

    python -m nodes.simulated JOIN_FILE FIRST_NODE NUM_NODES [SPREAD_SECONDS]      (in tests/)

Ranks answer at once, or, with SPREAD_SECONDS, one after the other within this time, as real ranks do: nodes in a mixed
order, and the ranks of each node within a tenth of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import json
import os
import resource
import secrets
import signal
import socket
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_dist.agent.nodes.link.joinfile import JoinFile
from jupyter_dist.agent.nodes.member import NodeAgent
from jupyter_dist.agent.processes.death import Ending
from jupyter_dist.agent.processes.starting.process import OnExit, ProcessHandle, RankDescriptors
from jupyter_dist.agent.processes.starting.startmethod import Preparing
from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.transport.frames import FrameDecoder, Header, decode_frame, encode_frame, pack

FIRST_PID = 1 << 23  # more than Linux gives
MEMORY_BYTES = 300 << 20
STEP_SECONDS = 0.1  # of the loop that a cell is that runs on
STEP = 55  # from a node to the one that answers after it: no divisor of a number of nodes that is used here


@dataclass
class Simulation:
    """What the simulated nodes of this process share; cells see it as `simulation`."""

    spread_seconds: float = 0.0  # within which ranks answer
    sent: Counter[str] = field(default_factory=Counter)  # frames of node agents to the head, by kind


simulation = Simulation()
_pids = itertools.count(FIRST_PID)


@dataclass(frozen=True)
class SimulatedProcess(ProcessHandle):
    """The process that a simulated rank would have."""

    end: Callable[[int | None, int | None], None] = field(default=lambda *_: None, compare=False, repr=False)

    def kill(self) -> None:
        self.end(None, signal.SIGKILL)

    async def usage(self) -> tuple[int, float]:
        return MEMORY_BYTES + self.pid % 1000, time.process_time()


class SimulatedRank:
    """What is at the rank's end of its channel and pipes."""

    def __init__(self, spec: RankSpec, fds: RankDescriptors, on_exit: Callable[[Ending], None]) -> None:
        self._rank = spec.rank
        self._world_size = spec.world_size
        self._on_exit = on_exit
        self._sock = socket.socket(fileno=os.dup(fds[0]))
        self._sock.setblocking(False)
        self._pipes = [os.dup(fd) for fd in fds[1:]]
        self._decoder = FrameDecoder()
        self._namespace: dict[str, Any] = {"__name__": "__main__", "rank": spec.rank, "world_size": spec.world_size}
        self._namespace["simulation"] = simulation
        self._unsent = b""
        node, others = spec.rank // spec.local_world_size, spec.world_size // spec.local_world_size
        self._place = 0.9 * (node * STEP % others) / others + 0.1 * spec.local_rank / spec.local_world_size
        self._loop: str | None = None  # the cell that runs on
        self._asked = 0.0  # when its pace was last asked for
        asyncio.get_running_loop().add_reader(self._sock, self._readable)
        self._send({"t": "phase", "phase": "joining"})
        ready = {"device": spec.device, "python_version": "3", "torch_version": "2", "backend": "gloo", "pid": 1}
        self._send({"t": "ready", **ready})

    def end(self, code: int | None, signum: int | None) -> None:
        """End, as its process would. Idempotent."""
        if self._sock.fileno() < 0:
            return
        asyncio.get_running_loop().remove_reader(self._sock)
        asyncio.get_running_loop().remove_writer(self._sock)
        self._sock.close()
        for fd in self._pipes:
            os.close(fd)
        self._on_exit(Ending(code, signum))

    def _readable(self) -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = self._sock.recv(1 << 18)
        if not data:
            self.end(1, None)
        for header, payload in self._decoder.feed(data):
            self._take(header, payload)

    def _take(self, header: Header, payload: bytes) -> None:
        kind = header["t"]
        if kind in ("execute", "call"):
            self._begin(header, payload if kind == "execute" else b"")
        elif kind == "shutdown":
            self.end(0, None)
        elif "id" in header:
            answer = self._pace(header["max_arrivals"]) if kind == "pace" else self._answer(kind)
            self._send(*pack({"t": "answer", "id": header["id"], "ok": True}, answer))

    def _pace(self, max_arrivals: int) -> Header:
        """The pace of a loop that waits for its data, as `PaceMeter.answer` has it."""
        now, since = time.monotonic(), self._asked
        self._asked = now
        newest = int(now / STEP_SECONDS)
        numbers = range(max(int(since / STEP_SECONDS) + 1, newest - max_arrivals), newest)
        rows = [["0", "all_reduce", 4096, n, int(1e6 * STEP_SECONDS * n), None, False] for n in numbers]
        seconds = now - since if since else 0.0
        place = ["<ipython-input-1-0123456789ab>", 4, "<module>", "for batch in loader:"]
        samples = [[activity, 10, 1000, place, None, False] for activity in ("input", "backward")]
        counts = dict.fromkeys(("compiles", "cpu_seconds", "run_delay_seconds", "stopped_seconds"), 0)
        found = {"seconds": seconds, "now": int(1e6 * now), "samples": samples, "arrivals": rows, **counts}
        nothing = {"collections": [0, 0.0], "device": [None, None], "grown": [], "updates": [], "steps": []}
        return {"execution_id": self._loop, "memory": self._answer("sample"), **found, **nothing}

    def _answer(self, kind: str) -> Header:
        if kind == "sample":
            memory = dict.fromkeys(("allocated_bytes", "reserved_bytes", "peak_bytes", "device_used_bytes"))
            return {"resident_bytes": MEMORY_BYTES + self._rank, **memory}
        if kind == "complete":
            return {"matches": ["rank", "world_size"], "cursor_start": 0, "cursor_end": 0}
        if kind == "stack":
            nothing = dict.fromkeys(("call", "collective", "wait"))
            return {"stack": [], "begun": 0, "cpu_seconds": time.process_time(), "comes": None, **nothing}
        if kind == "debug":
            return {
                "reply": {
                    "type": "response",
                    "success": False,
                    "message": "A simulated rank has no debugger.",
                    "body": {},
                }
            }
        return {"found": False, "data": {}, "busy": False, "num_subgroups": 0, "left": [], "freed_bytes": 0}

    def _begin(self, header: Header, code: bytes) -> None:
        if late_seconds := self._place * simulation.spread_seconds:
            asyncio.get_running_loop().call_later(late_seconds, self._run, header, code)
        else:
            self._run(header, code)

    def _run(self, header: Header, code: bytes) -> None:
        if self._sock.fileno() < 0:  # it has ended
            return
        execution = {"execution_id": header["execution_id"]}
        began, printed, error = time.perf_counter(), io.StringIO(), None
        try:
            with contextlib.redirect_stdout(printed):
                exec(_compiled(code), self._namespace)
        except Exception as err:  # the cell's
            lines = traceback.format_exception(err)
            error = {"ename": type(err).__name__, "evalue": str(err), "traceback": lines}
        frames = []
        if text := printed.getvalue():
            frames.append(({"t": "stream", **execution, "name": "stdout"}, text.encode()))
        if error is not None:
            frames.append(({"t": "output", **execution, "msg_type": "error"}, json.dumps(error).encode()))
        status = {"status": "error" if error else "ok", "seconds": round(time.perf_counter() - began, 6)}
        state = {"process_group": "ok", "collective_seq": 0, "kinds": {}}
        frames.append(({"t": "reply", **execution, **status, **state, "ename": None, "evalue": None}, b""))
        data = b"".join(encode_frame(*frame) for frame in frames)  # as the outbox of a rank does
        if seconds := self._namespace.pop("runs_on", 0.0):  # the cell is a loop
            self._loop, self._asked = header["execution_id"], 0.0
            asyncio.get_running_loop().call_later(seconds, self._end_loop, data)
        else:
            self._write(data)

    def _end_loop(self, data: bytes) -> None:
        self._loop = None
        if self._sock.fileno() >= 0:
            self._write(data)

    def _send(self, header: Header, payload: bytes = b"") -> None:
        self._write(encode_frame(header, payload))

    def _write(self, data: bytes) -> None:
        self._unsent += data
        with contextlib.suppress(BlockingIOError):
            self._unsent = self._unsent[self._sock.send(self._unsent) :]
        if self._unsent:
            asyncio.get_running_loop().add_writer(self._sock, self._flush)

    def _flush(self) -> None:
        asyncio.get_running_loop().remove_writer(self._sock)
        self._write(b"")


class SimulatedStart:
    """In place of StartMethod: its ranks are objects of this process."""

    def __init__(self, _: list[str], on_exit: OnExit) -> None:
        self._on_exit = on_exit
        self._tasks: set[asyncio.Task[None]] = set()
        self._ranks: set[SimulatedRank] = set()

    is_lost = False

    async def prepare(self, _: Preparing) -> None:
        pass

    async def start(self, spec: RankSpec, fds: RankDescriptors) -> ProcessHandle:
        def exited(ending: Ending) -> None:
            self._ranks.discard(rank)
            task = asyncio.ensure_future(self._on_exit(handle, ending))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        rank = SimulatedRank(spec, fds, exited)
        self._ranks.add(rank)
        handle = SimulatedProcess(next(_pids), 1, None, rank.end)
        return handle

    def children(self) -> set[int]:
        return set()

    async def settle(self) -> None:
        await asyncio.gather(*self._tasks)

    async def stop(self) -> None:
        for rank in list(self._ranks):
            rank.end(None, signal.SIGKILL)
        await self.settle()


class SimulatedNode(NodeAgent):
    """A node agent with a host name of its own, which counts what it sends."""

    def _about(self) -> Header:
        return {**super()._about(), "host": f"sim{self._node:03}"}

    def _welcome(self, header: Header) -> None:
        assert self._sock is not None
        send = self._sock.send

        def count_and_send(frame: bytes) -> None:
            simulation.sent[decode_frame(frame)[0]["t"]] += 1
            send(frame)

        self._sock.send = count_and_send
        super()._welcome(header)


async def _serve(join: JoinFile, nodes: range) -> None:
    agents = [SimulatedNode(join, node, secrets.token_hex(8), SimulatedStart) for node in nodes]

    def stop() -> None:
        for agent in agents:
            agent.stop("it was asked to end (a signal)")

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    reasons = await asyncio.gather(*(agent.run() for agent in agents))
    for reason in set(filter(None, reasons)):
        print(f"{reasons.count(reason)} node agents: {reason}", file=sys.stderr)


_codes: dict[bytes, Any] = {}


def _compiled(code: bytes) -> Any:
    if code not in _codes:
        _codes[code] = compile(code, "<cell>", "exec")
    return _codes[code]


def main() -> None:
    """Be these nodes until the group ends."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    file, first, number, *spread = sys.argv[1:]
    simulation.spread_seconds = float(spread[0]) if spread else 0.0
    join = JoinFile.parse(Path(file).read_text())
    asyncio.run(_serve(join, range(int(first), int(first) + int(number))))


if __name__ == "__main__":
    main()
