"""The head's side of a group over several machines: its port, its nodes, their links, and where ranks start."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from jupyter_dist.agent.processes.records import ArrivedRecords
from jupyter_dist.agent.processes.starters import StartedRank
from jupyter_dist.agent.processes.starting.process import OnExit
from jupyter_dist.agent.processes.starting.startmethod import Preparing
from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.wire.specs import GroupSpec, RankSpec
from jupyter_dist.system.limits import within
from jupyter_dist.transport.frames import Header, encode_frame
from jupyter_dist.transport.tasks import start_task

from . import paths
from .files import FileDoor
from .link import hello, sockets
from .link.given import shortage
from .link.joinfile import NAME, JoinFile, endpoint_of, join_command, own_addresses
from .link.rests import Rests
from .remote import FLAPS, NodeDoors, RemoteNode, lost_link
from .stores import LinkStores
from .tunnel.tunnels import Tunnels

if TYPE_CHECKING:
    from jupyter_dist.protocol.models import models

BEAT_SECONDS = 1.0
SILENT_SECONDS = 2.6  # named within 3 s: two beats are missing, and the third is late
LEASE_MARGIN_SECONDS = 5.0  # a node ends its ranks this long before the head calls them dead
LEAVE_SECONDS = 10.0
STALL_SECONDS = 2.0  # this process itself did not run: nodes may have sent messages meanwhile


class NodeListener(Protocol):
    """The group, as far as its nodes are concerned."""

    def nodes_changed(self) -> None:
        """Handle a new state of a node."""

    def nodes_reached(self, ranks: range, reason: str | None) -> None:
        """Handle a lost link to these ranks, with the reason; None: the link is back."""

    def nodes_end(self) -> None:
        """Handle the report of a node that its engine asks it to end: it keeps running for the group's grace."""

    def running_calls(self) -> list[dict[str, Any]]:
        """Return the calls (requests.RankCall) that ranks carry out now."""


class Nodes:
    """The nodes of one group. It starts the ranks, as StartMethod does for a group on one machine."""

    is_lost = False  # a node may be, which ends its ranks; the others continue

    def __init__(self, spec: GroupSpec, directory: Path, on_exit: OnExit, listener: NodeListener) -> None:
        """Open the port and write the join file.

        Raises:
            JupyterDistError: `bad_environment`, if this Python has no pyzmq; `bad_request`, if no port is free.
            OSError: the file cannot be written.
        """
        sockets.check_usable()
        self.stores = LinkStores()
        self._lease_seconds = spec.node_lease_seconds
        self._listener = listener
        self._arrived = ArrivedRecords()
        doors = NodeDoors(self.stores, FileDoor(listener.running_calls), self._arrived, listener.nodes_end)
        self._nodes = [RemoteNode(node, ranks, on_exit, doors) for node, ranks in enumerate(spec.node_ranges)]
        self._spares: list[RemoteNode] = []  # without ranks, since the group was resized
        self._by_identity: dict[bytes, RemoteNode] = {}
        self._complete = asyncio.Event()
        self._is_stopped = False
        self._master: asyncio.Task[tuple[str, int]] | None = None
        self._numbers = itertools.count(1)
        self._spec = spec
        self._path = directory / NAME
        public, secret = sockets.new_keys()
        client_public, client_secret = sockets.new_keys()
        first, last = spec.head_ports or (0, 0)
        ports = sockets.Ports(first, last, spec.ip_version)
        self._socket = sockets.HeadSocket(secret, client_public, self._receive, spec.num_nodes, ports)
        self._rests = Rests(spec.world_size, spec.num_nodes)
        self._socket.after_reading(self._read)
        JoinFile(
            spec.group_id,
            spec.name,
            _endpoints(spec, self._socket.port),
            public,
            client_secret,
            spec.num_nodes,
            spec.node_lease_seconds,
            spec.preload,
            spec.end_grace_seconds,
            spec.interface,
            spec.ip_version,
            bool(spec.tunnel),
        ).write(self._path)
        self._tunnels = Tunnels(spec.group_id, spec.tunnel, self._socket.port, self._note_tunnel)
        self._beating = start_task(self._beat(), "node links", self._beat_again)

    # -- RankStarter -------------------------------------------------------------------------------------------

    async def prepare(self, preparing: Preparing) -> None:
        """Wait until every node has joined, however long that takes, and has imported torch.

        Raises:
            JupyterDistError: `start_failed`, if torch cannot be imported on a node, or not in time, or if nodes do not
                reach each other.
        """
        await self._complete.wait()
        if not all(node.warm.done() for node in self._nodes):
            preparing.on_import()
        try:
            answers = asyncio.gather(*(asyncio.shield(node.warm) for node in self._nodes))
            for node, answer in zip(self._nodes, await within(preparing.seconds, answers), strict=True):
                if answer.get("error"):
                    error = JupyterDistError.from_dict(answer["error"])
                    raise JupyterDistError("start_failed", say("On %1: %2", node.label, error.message), error.hint)
                if answer.get("note"):
                    preparing.on_note(f"On {node.label}: {answer['note']}")
            await self.check_paths()
        except asyncio.TimeoutError as err:
            late = ", ".join(node.label for node in self._nodes if not node.warm.done())
            message = say("Torch was not imported within %1 s on %2.", f"{preparing.seconds:g}", late)
            raise JupyterDistError("start_failed", message) from err

    async def check_paths(self) -> None:
        """Raise JupyterDistError `start_failed`, naming the nodes that twice could not connect to each other."""
        if await self.broken_paths() and (text := await self.broken_paths()):
            raise JupyterDistError("start_failed", say("Nodes do not reach each other. %1", text))

    async def are_connected(self) -> bool:
        """Whether all nodes have joined, and can connect to each other."""
        return all(node.state == "joined" for node in self._nodes) and not await self.broken_paths()

    async def broken_paths(self) -> str:
        """Have the nodes try to connect to each other; return sentences about failed connections, or an empty text."""
        joined = [node for node in self._nodes if node.state == "joined"]
        broken: list[paths.BrokenPath] = []
        for interface in paths.interfaces_for(self._spec.backend, self._spec.env.for_exec()):
            try:
                broken += await paths.find_broken_paths(joined, interface) if len(joined) > 1 else []
            except JupyterDistError as err:
                return str(err)
        return paths.describe(broken, {node.node: node.label for node in joined})

    def children(self) -> set[int]:
        """Return the programs of tunnels; the ranks are processes of the node agents."""
        return self._tunnels.children

    async def settle(self) -> None:
        """Wait until no process is left that ended ranks had started."""
        await asyncio.gather(*(node.settle() for node in self._nodes if node.state == "joined"))

    async def stop(self) -> None:
        """Have all node agents end, and close the port. Idempotent."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self._beating.cancel()
        await asyncio.gather(*(node.leave(LEAVE_SECONDS) for node in self.all))
        await self._tunnels.close()
        self._path.unlink(missing_ok=True)
        self._socket.close()

    async def start(self, spec: RankSpec) -> StartedRank:
        """Start a rank on its node. Raises JupyterDistError `start_failed`, naming the node."""
        if self._master is None:
            self._master = asyncio.create_task(self._find_master(), name="free port on node 0")
        address, port = await asyncio.shield(self._master)
        spec.env.update(MASTER_ADDR=address, MASTER_PORT=str(port))
        assert spec.node is not None
        return await self._nodes[spec.node].start(next(self._numbers), spec)

    async def _find_master(self) -> tuple[str, int]:
        first = self._nodes[0]
        return str(first.hello["address"]), await first.free_port()

    # -- for the group --------------------------------------------------------------------------------------

    @property
    def all(self) -> list[RemoteNode]:
        """Return the nodes with ranks, in order, and the nodes that a resize of the group has left without any."""
        return [*self._nodes, *self._spares]

    @property
    def active(self) -> list[RemoteNode]:
        """Return the nodes that have ranks, in order."""
        return list(self._nodes)

    def free(self) -> list[RemoteNode]:
        """Return the nodes that have joined, and have no ranks."""
        return [node for node in self._spares if node.state == "joined"]

    def take_shape(self, spec: GroupSpec, nodes: Sequence[RemoteNode]) -> None:
        """Have ranks on these nodes, in this order. The ranks have their new numbers already."""
        spares = [node for node in self.all if node not in nodes]
        if nodes[0] is not self._nodes[0]:
            self._master = None
        self._spec, self._nodes, self._spares = spec, list(nodes), spares
        self._rests = Rests(spec.world_size, spec.num_nodes)
        ranges = [*spec.node_ranges, *(range(0) for _ in spares)]
        for number, (node, ranks) in enumerate(zip(self.all, ranges, strict=True)):
            node.take_place(number, ranks)
        self._note_complete()
        self._listener.nodes_changed()

    def give_up(self, node: RemoteNode) -> None:
        """Call the ranks of a node dead whose link is lost: it ends them if the link comes back."""
        self._gone(node, "its link was lost, and the group went on without it")

    def let_end(self) -> None:
        """Have nodes that were asked to end do so now."""
        for node in self.all:
            if node.state == "joined":
                node.send({"t": "let_end"})

    def spare_models(self) -> list[models.NodeModel]:
        """Return the machines without ranks, on which a resize can add some."""
        return [node.model() for node in self._spares]

    def conditions(self) -> list[str]:
        """Return a sentence if nodes have fewer CPUs or less memory than their ranks need."""
        joined = [node for node in self._nodes if node.state == "joined"]
        short = [(node.label, text) for node in joined if (text := shortage(node.hello, len(node.ranks)))]
        if not short:
            return []
        label, text = short[0]
        others = say("Nodes that lack as much: %1 more.", len(short) - 1) if len(short) > 1 else ""
        ask = "" if self._spec.launcher == "external" else say("Ask for more with the options of the launcher.")
        return [join(say("Node %1 has %2.", label.removeprefix("node "), text), others, ask)]

    def begin_generation(self) -> None:
        """Begin a generation of ranks, which meet at another address."""
        self._master = None

    def models(self) -> list[models.NodeModel]:
        """Return the nodes of docs/api.md."""
        return [node.model() for node in self._nodes]

    def command(self) -> str | None:
        """Return the command to run on each machine that is missing; None if none is."""
        is_missing = any(node.state in ("waiting", "gone") for node in self.all)
        return join_command(self._path) if is_missing else None

    def check_complete(self) -> None:
        """Raise JupyterDistError `group_not_ready` if ranks cannot be started on every node."""
        for node in self._nodes:
            if node.state == "unreachable":
                hint = say("Wait until it is back, or until its ranks are dead.")
                raise JupyterDistError("group_not_ready", say("The link to %1 is lost.", node.label), hint)
            if node.state != "joined":
                missing = say("Node %1 is missing.", node.node)
                message = missing if node.state == "waiting" else say("Node %1 is gone.", node.node)
                raise JupyterDistError("group_not_ready", message, self.how_to_join())

    def how_to_join(self) -> str:
        """Return a sentence on how to add a missing node."""
        if self._spec.launcher == "external":
            return say("Start a node agent on that machine or another one: %1", join_command(self._path))
        return say(
            "The launcher '%1' started it. If it does not start it again, as Slurm does with a job that is requeued,"
            " start the group with the same options when its ranks are dead: %2",
            self._spec.launcher,
            f"jupyter dist start-again {self._spec.name}",
        )

    def open_tunnels(self, hosts: Sequence[str], job: str, code: str) -> None:
        """Have a tunnel to the node agent on each host, if the group wants that."""
        if self._spec.tunnel:
            self._tunnels.open(hosts, job, code)

    def _note_tunnel(self, node: int, problem: str | None) -> None:
        """Show why a node that has not joined cannot."""
        found = next((each for each in self.all if each.node == node), None)
        if found is not None and found.state == "waiting" and found.message != problem:
            found.message = problem
            self._listener.nodes_changed()

    # -- the link -------------------------------------------------------------------------------------------

    def _receive(self, identity: bytes, header: Header, payload: bytes) -> None:
        if header.get("t") != "records":
            self._arrived.handle()
        if header.get("t") == "hello":
            self._hello(identity, header)
            return
        if header.get("t") == "ended":
            self._socket.send(identity, encode_frame({"t": "heard"}))
            self._ended(header)
            return
        node = self._by_identity.get(identity)
        if node is None or node.state == "unreachable":
            self._socket.send(identity, encode_frame({"t": "again"}))
            return
        node.receive(header, payload)
        if header.get("t") == "records":  # other ranks answer soon
            self._rests.arrived()
            self._socket.rest(self._rests.seconds)

    def _read(self) -> None:
        self._arrived.handle()
        self._rests.read()

    def _hello(self, identity: bytes, header: Header) -> None:
        try:
            header = hello.checked(header)
        except ValueError as err:
            self._refuse(identity, str(err))
            return
        session = header["session"]
        node = next((node for node in self.all if node.session == session), None)
        if node is not None and node.state == "gone":
            self._refuse(identity, f"its ranks were given up: {node.message}")
            return
        if node is None:
            node = self._place(identity, header)
            if node is None:
                return
            node.joined(session, header)
        self._connect(node, identity, header["received"])

    def _place(self, identity: bytes, header: Header) -> RemoteNode | None:
        """Return the node that a new agent becomes; None if it is refused."""
        wanted = header.get("node")
        if isinstance(wanted, int) and not 0 <= wanted < len(self.all):
            self._refuse(identity, f"there is no node {wanted}: the group has {len(self.all)}")
            return None
        meant = [node for node in self.all if not isinstance(wanted, int) or node.node == wanted]
        free = [node for node in meant if node.state in ("waiting", "gone")]
        if not free and any(node.state == "unreachable" for node in meant):
            self._socket.send(identity, encode_frame({"t": "wait"}))  # its machine may have been started again
            return None
        if not isinstance(wanted, int) and ACCELERATORS[self._spec.accelerator].has_devices:
            free = _by_fit(free, len(header["devices"]))
        if not free:
            which = f"node {wanted} has" if isinstance(wanted, int) else f"all {len(self.all)} nodes have"
            self._refuse(identity, f"{which} joined already")
            return None
        others = [node for node in self.all if node.state == "joined" and node is not free[0]]
        for name, words in (("python", "Python"), ("torch", "torch")):
            for other in others:
                if other.hello.get(name) != header.get(name):
                    own, its, host = header.get(name), other.hello.get(name), header["host"]
                    has = f"{words} {own} here, {its} on {other.label}"
                    self._refuse(identity, f"all nodes need the same {words}: {has}")
                    free[0].message = say(
                        "%1 cannot join: it has %2 %3, and %4 has %5.", host, words, own, other.label, its
                    )
                    self._listener.nodes_changed()
                    return None
        return free[0]

    def _refuse(self, identity: bytes, reason: str) -> None:
        self._socket.send(identity, encode_frame({"t": "refused", "reason": reason}))

    def _connect(self, node: RemoteNode, identity: bytes, received: int) -> None:
        self._by_identity.pop(node.identity, None)
        node.identity = identity
        self._by_identity[identity] = node
        node.received_at = time.monotonic()
        welcome = {
            "t": "welcome",
            "node": node.node,
            "received": node.conversation.received,
            "cwd": self._spec.cwd,
            "ranks": str(RankSet(node.ranks)),
            "env": self._spec.env.for_socket(),  # no file of an engine has it
        }
        self._socket.send(identity, encode_frame(welcome))
        if node.state == "unreachable":
            node.state, node.message = "joined", None
            self._listener.nodes_reached(node.ranks, None)
        node.conversation.connected(lambda frame: self._socket.send(identity, frame), received)
        self._note_complete()
        self._listener.nodes_changed()

    def _note_complete(self) -> None:
        if all(node.state == "joined" for node in self._nodes):
            self._complete.set()
        else:
            self._complete.clear()

    def _ended(self, header: Header) -> None:
        """Handle the message of a node agent's keeper: the agent has ended, and so have its ranks."""
        for node in self.all:
            if node.session and node.session == header.get("session"):
                self._gone(node, hello.one_line(header.get("reason")))

    def _gone(self, node: RemoteNode, reason: str) -> None:
        self._by_identity.pop(node.identity, None)
        node.ended(reason)
        self._note_complete()
        self._listener.nodes_changed()

    async def _beat(self) -> None:
        awake_since = before = time.monotonic()
        while True:
            await asyncio.sleep(BEAT_SECONDS / 4)
            now = time.monotonic()
            if now - before > STALL_SECONDS:
                awake_since = now
            before = now
            for node in self.all:
                self._look_at(node, now - max(node.received_at, awake_since))

    def _look_at(self, node: RemoteNode, silent_seconds: float) -> None:
        if node.state not in ("joined", "unreachable"):
            return
        if node.conversation.is_due(BEAT_SECONDS):
            node.conversation.acknowledge()
        if silent_seconds > self._lease_seconds + LEASE_MARGIN_SECONDS:
            lease = f"{self._lease_seconds:g}"
            self._gone(node, say("its machine could not be reached for %1 s, and ends its ranks then", lease))
        elif silent_seconds > SILENT_SECONDS and node.state == "joined":
            node.lost_at = [*node.lost_at[1 - FLAPS :], time.monotonic()]
            node.state, node.message = "unreachable", lost_link(node.lost_at)
            node.conversation.disconnected()
            reason = say(
                "The link to %1 is lost. Its ranks are ended if it does not come back within %2 s.",
                node.label,
                f"{self._lease_seconds:g}",
            )
            self._listener.nodes_reached(node.ranks, reason)
            self._listener.nodes_changed()

    def _beat_again(self, _: BaseException) -> None:
        self._beating = start_task(self._beat(), "node links", self._beat_again)


def _endpoints(spec: GroupSpec, port: int) -> list[str]:
    """Return where nodes reach the head, the preferred way first."""
    if spec.head_addresses:
        return [endpoint_of(host, other or port) for host, other in spec.head_addresses]
    return [endpoint_of(address, port) for address in own_addresses(spec.ip_version)]


def _by_fit(free: Sequence[RemoteNode], num_devices: int) -> list[RemoteNode]:
    """Return the free nodes, first the one with the most ranks for which a machine has devices, if nodes differ."""
    if not num_devices:  # not known
        return list(free)
    return sorted(free, key=lambda node: (node.room > num_devices, abs(num_devices - node.room)))
