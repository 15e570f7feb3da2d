"""A node agent: dials the head, starts ranks on this machine, and sends their output, until the group ends."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import os
import platform
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_dist.agent.processes.death import Ending, OutOfMemory
from jupyter_dist.agent.processes.ending import sweep
from jupyter_dist.agent.processes.starting.environment import node_devices
from jupyter_dist.agent.processes.starting.process import OnExit, ProcessHandle, open_descriptors
from jupyter_dist.agent.processes.starting.startmethod import PreloadingStarter, Preparing, StartMethod
from jupyter_dist.protocol import accelerators
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say, words_of
from jupyter_dist.protocol.secrets import Secrets
from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.system.devices import read_devices, visible
from jupyter_dist.system.limits import within
from jupyter_dist.system.processes import end_orphans, reap
from jupyter_dist.transport.frames import Header, encode_frame, pack, unpack
from jupyter_dist.transport.tasks import start_task

from .link.given import given_bytes, given_cpus, numa_nodes, share_of_cpus
from .link.joinfile import JoinFile, address_of_ranks, interfaces, label_of
from .link.places import endpoints_of
from .link.sockets import REDIAL_SECONDS, LinkConversation, NodeSocket, check_usable, reachable
from .link.trial import TrialPort, try_places
from .localrank import LocalRank
from .outgoing import OutgoingRecords, gather_seconds
from .stores import StoreDoor

if TYPE_CHECKING:
    from jupyter_dist.protocol.models.models import NodeDevice

BEAT_SECONDS = 1.0
TICK_SECONDS = 0.25
SILENT_SECONDS = 3.0  # then it connects again
DIAL_SECONDS = 60.0  # for the first answer of the head
LOST_SECONDS = 10.0  # a head that is silent for so long does not save the group any more
MAX_REFUSED = 3
MAX_KEPT_BYTES = 32 << 20
IMPORT_SECONDS = 300.0
END_SECONDS = 15.0

Answer = Header


class NodeAgent:
    """One node of a group."""

    def __init__(
        self,
        join: JoinFile,
        node: int | None,
        session: str,
        start_method: Callable[[list[str], OnExit], PreloadingStarter] = StartMethod,
        folder: Path | None = None,
    ) -> None:
        """`start_method` starts the ranks; made from the modules to preload, and what to call when a rank ends.

        `folder` is for its files, and removed at the end.
        """
        check_usable()
        self._join = join
        self._node = node
        self._session = session
        self._folder = folder or Path(tempfile.mkdtemp())
        self._conversation = LinkConversation(MAX_KEPT_BYTES, self._listen_all)
        self._ranks: dict[int, LocalRank] = {}
        self._outgoing = OutgoingRecords(self._conversation.send)
        self._gather_seconds = gather_seconds(join.num_nodes)
        self._flushing: asyncio.Handle | None = None  # when its records are sent
        self._by_process: dict[ProcessHandle, LocalRank] = {}
        self._ended_early: dict[ProcessHandle, Ending] = {}  # before their start was answered
        self._new_start_method = start_method
        self._start_method: PreloadingStarter | None = None  # begins with the environment of the group
        self._out_of_memory = OutOfMemory()
        self._sock: NodeSocket | None = None
        self._endpoints = endpoints_of(join, node)
        self._num_refused = 0  # how often the head's machine has refused a connection: its port is closed
        self._is_welcome = False  # on this connection
        self._ending: str | None = None  # why it is about to end
        self._was_welcome = self._has_waited = False
        self._received_at = self._dialled_at = time.monotonic()
        self._address = ""
        self._label: str | None = None  # the name by which gloo and NCCL find the address
        self._devices: list[NodeDevice] = []
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._trial_port = TrialPort()
        self._stores = StoreDoor(self._folder / "stores", self._send)
        self._handlers: dict[str, Callable[[Header, bytes], Awaitable[Answer]]] = {
            "start": self._start,
            "usage": self._usage,
            "look": self._look,
            "settle": self._settle,
            "port": self._port,
            "trial_port": self._open_trial_port,
            "try_places": self._try_places,
            "bye": self._bye,
        }

    async def run(self) -> str:
        """Be a node of the group until it ends; return why it ends otherwise, or nothing."""
        await self._stores.listen()
        self._devices = await read_devices()
        ticking = start_task(self._tick(), "link to the head", self._failed)
        try:
            return await self._over
        finally:
            ticking.cancel()
            with contextlib.suppress(asyncio.TimeoutError):
                await within(END_SECONDS, self._end())

    def asked_to_end(self, reason: str) -> None:
        """End, at the latest after the grace of the join file: until then the head saves the group, and lets it end."""
        seconds = self._join.end_grace_seconds
        if seconds <= 0 or not self._is_welcome:
            self.stop(reason)
        elif self._ending is None:  # the engine may send several signals
            self._ending = reason
            self._send({"t": "ending"})
            asyncio.get_running_loop().call_later(seconds, self.stop, reason)

    def stop(self, reason: str) -> None:
        """End the ranks and the agent."""
        if not self._over.done():
            self._over.set_result(reason)

    # -- the link -------------------------------------------------------------------------------------------

    async def _tick(self) -> None:
        """Keep the connection and the lease. The lease waits for no socket."""
        dialling: asyncio.Task[None] | None = None
        before = time.monotonic()
        while True:
            now = time.monotonic()
            if now - before > SILENT_SECONDS:  # this process did not run, and has received nothing
                self._received_at = max(self._received_at, min(now, self._received_at + (now - before)))
            before = now
            silent = now - self._received_at
            self._check_lease(silent)
            if self._sock is not None and self._sock.is_refused and not self._was_welcome:
                self.stop("the head does not accept the key of this join file: it is that of another group")
            is_over = self._sock is None or self._sock.is_over
            is_due = now - self._dialled_at > REDIAL_SECONDS or self._sock is None
            if (is_over or silent > SILENT_SECONDS) and is_due and (dialling is None or dialling.done()):
                self._dialled_at = now
                dialling = self._begin(self._dial(), "dial")
            if self._is_welcome and self._conversation.is_due(BEAT_SECONDS):
                self._conversation.acknowledge()
            self._reap()
            self._out_of_memory.look()
            await asyncio.sleep(TICK_SECONDS)

    def _check_lease(self, silent: float) -> None:
        if not self._was_welcome and silent > DIAL_SECONDS:
            where = ", ".join(self._endpoints)
            self.stop(f"the head does not answer at {where}: the group has ended, or no route leads there")
        elif self._was_welcome and silent > self._join.lease_seconds:
            self.stop(f"the head could not be reached for {self._join.lease_seconds:g} s")
        elif self._ending is not None and silent > LOST_SECONDS:
            self.stop(self._ending)

    async def _dial(self) -> None:
        try:
            found = await reachable(self._endpoints)
        except ConnectionRefusedError:
            self._num_refused += 1
            if self._num_refused >= MAX_REFUSED and not self._was_welcome:
                where = ", ".join(self._endpoints)
                self.stop(f"nothing listens at {where}: the group of this join file has ended")
            return
        if found is None:
            return
        endpoint, link = found
        if not self._take_address(link):
            return
        if self._sock is not None:
            self._sock.close()
        self._is_welcome = False
        self._conversation.disconnected()
        self._sock = NodeSocket(endpoint, self._join.server_key, self._join.client_secret, self._receive)
        self._sock.send(encode_frame({"t": "hello", "received": self._conversation.received, **self._about()}))

    def _take_address(self, link: str) -> bool:
        """Have the address where ranks meet; end, if this machine does not have the interface for it."""
        interface, ip_version = self._join.interface, self._join.ip_version
        address = address_of_ranks(link, interface, ip_version)
        if address is None:
            known = ", ".join(dict.fromkeys(label for label, _ in interfaces(ip_version)))
            version = f" of IPv{ip_version}" if ip_version else ""
            self.stop(f"its machine has no network interface {interface} with an address{version}; it has {known}")
            return False
        self._address, self._label = address, label_of(address)
        return True

    def _about(self) -> Header:
        return {
            "session": self._session,
            "node": self._node,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "address": self._address,
            "interface": self._label and self._label.partition(":")[0],
            "python": ".".join(platform.python_version_tuple()[:2]),
            "torch": _torch_version(),
            "devices": visible(self._devices, os.environ),
            "memory": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            "cpus": given_cpus(os.environ),
            "machine_cpus": os.cpu_count(),
            "given_bytes": given_bytes(os.environ),
        }

    def _receive(self, header: Header, payload: bytes) -> None:
        self._received_at = time.monotonic()
        kind = header.get("t")
        if kind == "welcome":
            self._welcome(header)
        elif kind == "refused":
            self.stop(str(header.get("reason")))
        elif kind == "wait":
            self._wait()
        elif kind == "again":
            self._received_at = min(self._received_at, time.monotonic() - SILENT_SECONDS)
            self._dialled_at = 0.0
            if self._sock is not None:
                self._sock.is_over = True
        elif self._is_welcome and self._conversation.take(header, payload):
            self._take(*unpack(header, payload))

    def _wait(self) -> None:
        """Ask again later: the head has not given up the agent before this one, whose link is lost."""
        if not self._has_waited:
            self._has_waited = True
            which = "a node" if self._node is None else f"node {self._node}"
            note = f"The link to {which} is lost. This agent joins if it is not back after the lease.\n"
            sys.stderr.write(note)
            sys.stderr.flush()

    def _welcome(self, header: Header) -> None:
        assert self._sock is not None
        self._node = int(header["node"])
        self._is_welcome = self._was_welcome = True
        self._conversation.connected(self._sock.send, int(header["received"]))
        if self._start_method is None:
            os.environ.update(Secrets.parsed(header["env"]).for_exec())
            self._start_method = self._new_start_method(self._join.preload, self._exited)
            self._begin(self._report_warm(self._start_method), "report that torch is imported")

    def _send(self, header: Header, payload: bytes = b"") -> None:
        self._outgoing.flush()
        self._conversation.send(header, payload)

    def _take(self, header: Header, payload: bytes) -> None:
        kind = header["t"]
        if kind == "in":
            receivers = [self._ranks[number] for number in header["ps"] if number in self._ranks]
            if header.get("cell"):
                self._outgoing.begin(receiver.rank for receiver in receivers)
            for receiver in receivers:
                receiver.write(payload)
            return
        if kind == "ranks":
            self._renumber(header["numbers"])
            return
        rank = self._ranks.get(int(header.get("p") or 0))
        if kind in self._handlers:
            self._begin(self._answer(header, payload), kind)
        elif kind == "let_end" and self._ending is not None:
            self.stop(self._ending)
        elif kind == "stored":
            self._stores.answer(header["c"], header["a"], payload)
        elif rank is not None:
            self._signal_rank(rank, kind)

    def _signal_rank(self, rank: LocalRank, kind: str) -> None:
        if kind == "close":
            rank.close_channel()
        elif kind == "kill" and rank.handle is not None:
            rank.handle.kill()
        elif kind == "interrupt" and rank.handle is not None:
            rank.handle.interrupt()

    def _renumber(self, numbers: list[list[int]]) -> None:
        """Have other numbers for the ranks, by the number of the process: the group was resized."""
        self._flush()
        known = [(self._ranks[process], rank) for process, rank in numbers if process in self._ranks]
        self._outgoing.renumber({rank.rank: number for rank, number in known})
        for rank, number in known:
            rank.rank = number

    async def _answer(self, header: Header, payload: bytes) -> None:
        identity = {"t": "answer", "id": header["id"]}
        try:
            answer = await self._handlers[header["t"]](header, payload)
            self._send(*pack({**identity, "ok": True}, answer or {"done": True}))
        except JupyterDistError as err:
            self._send(*pack({**identity, "ok": False}, {"error": err.to_dict()}))
        except Exception as err:  # the outermost level of a request: the head must get an answer
            error = JupyterDistError("internal", f"The node agent failed: {err!r:.500}")
            self._send(*pack({**identity, "ok": False}, {"error": error.to_dict()}))

    # -- requests -------------------------------------------------------------------------------------------

    async def _report_warm(self, start_method: PreloadingStarter) -> None:
        notes: list[str] = []
        try:
            await start_method.prepare(Preparing(IMPORT_SECONDS, on_note=notes.append))
        except JupyterDistError as err:
            self._send(*pack({"t": "warm"}, {"error": err.to_dict()}))
        else:
            self._send(*pack({"t": "warm"}, {"note": notes[0] if notes else ""}))

    async def _start(self, header: Header, _: bytes) -> Answer:
        spec = self._own_spec(RankSpec.from_dict(header["spec"]))
        assert self._start_method is not None  # the head asks after its welcome
        await self._start_method.prepare(Preparing(IMPORT_SECONDS))
        number = int(header["p"])
        rank = self._ranks[number] = LocalRank(number, spec.rank, lambda name, data: self._on_read(rank, name, data))
        try:
            with open_descriptors(rank.open) as fds:
                rank.handle = await self._start_method.start(spec, fds)
        except JupyterDistError:
            self._ranks.pop(number).close()
            raise
        self._by_process[rank.handle] = rank
        rank.listen(self._conversation.is_full)
        answer = {"pid": rank.handle.pid, "started": rank.handle.started}
        if (ending := self._ended_early.pop(rank.handle, None)) is not None:
            self._begin(self._exited(rank.handle, ending), "early end")  # sent after the answer
        return answer

    def _own_spec(self, spec: RankSpec) -> RankSpec:
        """Return the spec with what only this machine knows. Raises JupyterDistError if it does not fit it."""
        if not os.path.isdir(spec.cwd):
            message = say("there is no folder %1.", spec.cwd)
            raise JupyterDistError("bad_directory", message, say("Choose 'cwd' so that every node has it."))
        network = accelerators.on_interface(self._label) if self._label else {}
        own = node_devices(spec, os.environ, len(self._devices))
        given = sorted(os.sched_getaffinity(0))
        nodes = numa_nodes() if spec.cpu_binding != "none" else []
        return dataclasses.replace(
            spec,
            env={**network, **spec.env, **own},
            store_socket=str(self._stores.path),
            outlives_term=self._join.end_grace_seconds > 0,
            cpus=share_of_cpus(spec.cpu_binding, spec.local_rank, spec.local_world_size, given, nodes),
        )

    async def _usage(self, header: Header, _: bytes) -> Answer:
        rank = self._ranks.get(int(header["p"]))
        used = await rank.handle.usage() if rank is not None and rank.handle is not None else None
        return {"memory": used[0], "cpu": used[1]} if used else {"memory": None}

    async def _look(self, header: Header, _: bytes) -> Answer:
        rank = self._ranks.get(int(header["p"]))
        seen = None
        if rank is not None and rank.handle is not None:
            seen = await rank.handle.look(float(header["silent_seconds"]), header["knows_line"] is True)
        if seen is None:
            return {"does": None}
        return {"does": seen.does, "does_words": words_of(seen.does), "frames": seen.frames}

    async def _settle(self, *_: Any) -> Answer:
        assert self._start_method is not None
        await self._start_method.settle()
        if not self._by_process:  # a restart; else the other ranks continue
            await sweep(os.getpid(), self._children())
        return {}

    async def _port(self, *_: Any) -> Answer:
        with socket.socket(socket.AF_INET6 if ":" in self._address else socket.AF_INET) as probe:
            probe.bind((self._address, 0))
            return {"port": probe.getsockname()[1]}

    async def _open_trial_port(self, header: Header, _: bytes) -> Answer:
        try:
            return await self._trial_port.open(header.get("interface"), self._address)
        except OSError as err:
            return {"failed": str(err)}

    async def _try_places(self, header: Header, _: bytes) -> Answer:
        return {"failed": await try_places(header["places"])}

    async def _bye(self, *_: Any) -> Answer:
        await self._end_ranks()
        asyncio.get_running_loop().call_later(0.05, self.stop, "")  # after the answer
        return {}

    # -- its ranks ------------------------------------------------------------------------------------------

    def _on_read(self, rank: LocalRank, name: str, data: bytes) -> None:
        """Send output or messages of a rank, bundled with what other ranks send."""
        if name == "channel":
            self._outgoing.add_bytes(rank.number, rank.rank, data)
        else:
            self._outgoing.add_text(rank.rank, name, data)
        if self._outgoing:
            self._flush_soon()
        self._pause_if_full()

    def _flush_soon(self) -> None:
        """Send the records after this turn of the event loop, or when more of the ranks have sent some."""
        loop, is_complete = asyncio.get_running_loop(), self._outgoing.is_complete
        if self._flushing is None or (is_complete and isinstance(self._flushing, asyncio.TimerHandle)):
            if self._flushing is not None:
                self._flushing.cancel()
            soon = loop.call_soon(self._flush) if is_complete else loop.call_later(self._gather_seconds, self._flush)
            self._flushing = soon

    def _flush(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
        self._flushing = None
        self._outgoing.flush()
        self._pause_if_full()

    def _pause_if_full(self) -> None:
        if self._conversation.is_full:
            self._listen_all()

    def _listen_all(self) -> None:
        for rank in self._by_process.values():
            rank.listen(self._conversation.is_full)

    async def _exited(self, handle: ProcessHandle, ending: Ending) -> None:
        rank = self._by_process.pop(handle, None)
        if rank is None:
            self._ended_early[handle] = ending
            return
        ending = self._out_of_memory.explain(handle, ending)
        rank.drain()
        rank.close()
        self._ranks.pop(rank.number, None)
        self._outgoing.forget(rank.number, rank.rank)
        told = {name: getattr(ending, name) for name in ("code", "signal", "peak_bytes", "because", "killed")}
        self._send(*pack({"t": "exited", "p": rank.number}, {**told, "out_of_memory": ending.out_of_memory}))

    async def _end_ranks(self) -> None:
        for rank in list(self._by_process.values()):
            if rank.handle is not None:
                rank.handle.kill()
        if self._start_method is not None:
            await self._start_method.settle()
        await sweep(os.getpid(), self._children())

    async def _end(self) -> None:
        await self._end_ranks()
        if self._start_method is not None:
            await self._start_method.stop()
        await sweep(os.getpid(), ())
        self._trial_port.close()
        await self._stores.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._sock is not None:
            self._sock.close(linger_ms=500)

    def _reap(self) -> None:
        reap(self._children())
        end_orphans(self._children())

    def _children(self) -> set[int]:
        return self._start_method.children() if self._start_method is not None else set()

    def _begin(self, work: Any, name: str) -> asyncio.Task[None]:
        task = start_task(work, name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _failed(self, error: BaseException) -> None:
        self.stop(f"the node agent failed: {error!r:.300}")


@functools.cache  # read each time a connection begins, else
def _torch_version() -> str | None:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None


def torch_is_missing() -> bool:
    """Whether this Python has no torch."""
    return _torch_version() is None
