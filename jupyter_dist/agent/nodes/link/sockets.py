"""The two ends of the link between head and node agents: pyzmq with CURVE and pinned keys.

Nothing here waits for a socket: a message that cannot be sent now is dropped, and sent again by the conversation
(transport/resuming.py) after the next connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.system.limits import within
from jupyter_dist.transport.frames import FrameDecoder, FrameError, Header, encode_frame
from jupyter_dist.transport.resuming import MAX_NUMBER, Conversation, LostError

from .joinfile import endpoint_of
from .places import UNIX

try:
    import zmq
    from zmq.utils import z85
    from zmq.utils.monitor import parse_monitor_message
except ImportError:  # in the user's environment; only groups over several machines need it
    zmq = None  # type: ignore[assignment]

MAX_MESSAGE_BYTES = 16 << 20
MAX_PAYLOAD_BYTES = 12 << 20  # of a frame: with its header and what is bundled with it, it fits into a message
AT_ONCE = 500  # messages, before other things of this process get their turn
AT_ONCE_BYTES = 8 << 20
BUNDLE_BYTES = 1 << 20
REDIAL_SECONDS = 2.0
HANDSHAKE_MS = 10_000  # then a connection that has not shown the group's key is closed
STRANGERS = 1024  # connections besides the nodes' connections
CONNECTIONS_PER_NODE = 4

log = logging.getLogger(__name__)

Receive = Callable[[bytes, Header, bytes], None]  # identity of the sender, header, payload


def check_usable() -> None:
    """Raise JupyterDistError `bad_environment` if this Python has no pyzmq with encryption."""
    if "zmq" not in sys.modules or not zmq.has("curve"):
        message = say("A group over several machines needs pyzmq (with CURVE) in its environment.")
        raise JupyterDistError("bad_environment", message, say("Install it there: %1.", "pip install pyzmq"))


def new_keys() -> tuple[str, str]:
    """Return a public and a secret key."""
    public, secret = zmq.curve_keypair()
    return public.decode(), secret.decode()


class LinkConversation(Conversation):
    """A conversation that refuses what these sockets do not take.

    zmq drops the connection over which a message comes that is too large. The conversation would send it again over the
    next connection, without end, and all later messages would wait.
    """

    def send(self, header: Header, payload: bytes = b"") -> None:
        """Send a message, now or as soon as there is a connection.

        Raises:
            JupyterDistError: `too_large`.
        """
        try:
            encode_frame({**header, "n": MAX_NUMBER, "ack": MAX_NUMBER})
            if len(payload) > MAX_PAYLOAD_BYTES:
                raise FrameError(f"payload {len(payload)} bytes, at most {MAX_PAYLOAD_BYTES}")
        except FrameError as err:
            message = say("This is too large for the link between the group's machines (%1).", err)
            raise JupyterDistError("too_large", message, say("Exchange it by a collective or a file.")) from err
        super().send(header, payload)


class _Reader:
    """Reads the messages of a zmq socket, whose descriptor becomes readable only at changes."""

    def __init__(self, sock: Any, take: Callable[[list[bytes]], None]) -> None:
        self.on_read: Callable[[], None] = lambda: None  # called when all that has arrived was passed to `take`
        self._sock = sock
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._fd = sock.getsockopt(zmq.FD)
        self._loop.add_reader(self._fd, self.look)
        self._loop.call_soon(self.look)
        self._rest_seconds = 0.0
        self._resting: asyncio.TimerHandle | None = None

    def rest(self, seconds: float) -> None:
        """Read no more for a moment, once all that has arrived is read: waking for a message costs as much as it."""
        self._rest_seconds = seconds

    def look(self) -> None:
        """Read all messages that have arrived; also called after each send, which may reset the descriptor."""
        if self._resting is None:
            self._read()
            self.on_read()

    def _read(self) -> None:
        num_bytes = 0
        for _ in range(AT_ONCE):
            try:
                parts = self._sock.recv_multipart(zmq.NOBLOCK)
            except zmq.ZMQError:  # nothing there, or closed
                self._begin_rest()
                return
            try:
                self._take(parts)
            except Exception:  # the outermost level of a message: later messages must still be handled
                log.exception("A message of another machine cannot be handled")
            if self._sock.closed:
                return
            num_bytes += sum(map(len, parts))
            if num_bytes > AT_ONCE_BYTES:
                break
        self._loop.call_soon(self.look)

    def _begin_rest(self) -> None:
        if self._rest_seconds and not self._sock.closed:
            self._loop.remove_reader(self._fd)
            self._resting = self._loop.call_later(self._rest_seconds, self._end_rest)
            self._rest_seconds = 0.0

    def _end_rest(self) -> None:
        self._resting = None
        self._loop.add_reader(self._fd, self.look)
        self.look()

    def look_soon(self) -> None:
        """Read again soon, if messages have arrived."""
        if self._resting is None and not self._sock.closed and self._sock.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            self._loop.call_soon(self.look)

    def close(self) -> None:
        """Stop, and close the socket. Idempotent."""
        self.stop()
        self._sock.close(linger=0)

    def stop(self) -> None:
        """Read no more. Idempotent."""
        if self._resting is not None:
            self._resting.cancel()
        with contextlib.suppress(ValueError, RuntimeError):
            self._loop.remove_reader(self._fd)


class _Bundles:
    """Bundles the frames of one turn of the event loop: each message of zmq costs time, whatever its size."""

    def __init__(self, send: Callable[[bytes, bytes], None]) -> None:
        self._send = send
        self._frames: dict[bytes, list[bytes]] = {}  # by receiver
        self._num_bytes = 0

    def add(self, receiver: bytes, frame: bytes) -> None:
        """Add a frame, which is sent soon."""
        if not self._frames:
            asyncio.get_running_loop().call_soon(self.flush)
        self._frames.setdefault(receiver, []).append(frame)
        self._num_bytes += len(frame)
        if self._num_bytes >= BUNDLE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send all now. Idempotent."""
        frames, self._frames, self._num_bytes = self._frames, {}, 0
        for receiver, waiting in frames.items():
            self._send(receiver, b"".join(waiting) if len(waiting) > 1 else waiting[0])


def max_connections(num_nodes: int) -> int:
    """Return how many connections a head may have; the rest of its descriptors is for its group."""
    own = CONNECTIONS_PER_NODE * num_nodes
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = own + STRANGERS
    return most if soft == resource.RLIM_INFINITY else max(own, min(most, soft // 2))


class _Door:
    """Closes connections beyond a number: before the handshake, anybody who reaches the port can open them."""

    def __init__(self, context: Any, sock: Any, port: int, max_open: int) -> None:
        self._sock = sock
        self._port = port
        self._max_open = max_open
        self._open: set[int] = set()  # descriptors
        address = f"inproc://door-{port}"
        sock.monitor(address, zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)
        events = context.socket(zmq.PAIR)
        events.setsockopt(zmq.RCVHWM, 1)  # zmq accepts no more connections than we count, and some in advance
        events.connect(address)
        self._events = _Reader(events, self._take)

    def close(self) -> None:
        """Count no more. Before the socket is closed: zmq would wait for us to read."""
        self._events.look()
        self._sock.monitor(None, 0)
        self._events.close()

    def _take(self, parts: list[bytes]) -> None:
        event = parse_monitor_message(parts)
        descriptor = int(event["value"])
        if event["event"] == zmq.EVENT_DISCONNECTED:
            self._open.discard(descriptor)
            return
        self._open.add(descriptor)
        if len(self._open) > self._max_open:
            self._shut(descriptor)

    def _shut(self, descriptor: int) -> None:
        """End a connection; zmq closes its descriptor. The descriptor may be another file's already."""
        with contextlib.suppress(OSError):
            connection = socket.socket(fileno=descriptor)
            try:
                is_ours = connection.family in (socket.AF_INET, socket.AF_INET6)
                if is_ours and connection.getsockname()[1] == self._port:
                    connection.shutdown(socket.SHUT_RDWR)
            finally:
                connection.detach()


class Ports(NamedTuple):
    """The ports that a head may open, from `first` to `last`; 0: any."""

    first: int = 0
    last: int = 0
    ip_version: str = ""

    def bind(self, sock: Any) -> int:
        """Open the first port that is free, on all interfaces; return its number.

        Raises:
            JupyterDistError: `bad_request`, if none is free, or this user may not open them.
        """
        sock.setsockopt(zmq.IPV6, int(self.ip_version != "4"))  # IPv4 as well, and alone where there is no IPv6
        why = ""
        for port in range(self.first, self.last + 1) if self.first else ("*",):
            try:
                sock.bind(f"tcp://*:{port}")
            except zmq.ZMQError as err:
                why = str(err.strerror).lower()
                continue
            endpoint = bytes(sock.getsockopt(zmq.LAST_ENDPOINT))
            return int(endpoint.rpartition(b":")[2].rstrip(b"\0"))
        ports = str(self.first) if self.first == self.last else f"{self.first}-{self.last}"
        hint = say("Set the option 'head_port' to others; each group on nodes needs one.")
        raise bad_request(say("The head of the group cannot open port %1: %2.", ports, why), hint)


ANY_PORT = Ports()


class HeadSocket:
    """The only port of a head. A client without the group's key gets no further than the handshake."""

    def __init__(
        self, secret: str, client_public: str, receive: Receive, num_nodes: int = 1, ports: Ports = ANY_PORT
    ) -> None:
        """Listen on all interfaces. Raises JupyterDistError `bad_request` if no port is free."""
        self._context: Any = zmq.Context()
        self._allowed = z85.decode(client_public.encode())
        self._receive = receive
        doorman = self._context.socket(zmq.REP)
        doorman.bind("inproc://zeromq.zap.01")
        self._doorman = _Reader(doorman, lambda parts: self._judge(doorman, parts))
        self._sock = self._context.socket(zmq.ROUTER)
        options: dict[int, Any] = {
            zmq.CURVE_SERVER: 1,
            zmq.CURVE_SECRETKEY: secret.encode(),
            zmq.ZAP_DOMAIN: b"nodes",
            zmq.SNDHWM: 0,  # the conversations limit what waits
            zmq.RCVHWM: 0,
            zmq.MAXMSGSIZE: MAX_MESSAGE_BYTES,
            zmq.ROUTER_MANDATORY: 1,
            zmq.HANDSHAKE_IVL: HANDSHAKE_MS,
            zmq.HEARTBEAT_IVL: 5000,  # drops what waits for a connection that is gone
            zmq.HEARTBEAT_TIMEOUT: 10_000,
        }
        for option, value in options.items():
            self._sock.setsockopt(option, value)
        try:
            self.port = ports.bind(self._sock)
        except JupyterDistError:
            self._sock.close()
            self._doorman.close()
            self._context.term()
            raise
        self._reader = _Reader(self._sock, self._take)
        self._door = _Door(self._context, self._sock, self.port, max_connections(num_nodes))
        self._bundles = _Bundles(self._send)

    def send(self, identity: bytes, frame: bytes) -> None:
        """Send to one client, with what else is sent to it now; dropped if its connection is gone."""
        self._bundles.add(identity, frame)

    def _send(self, identity: bytes, frames: bytes) -> None:
        with contextlib.suppress(zmq.ZMQError):
            self._sock.send_multipart([identity, frames], zmq.NOBLOCK)
        self._reader.look_soon()

    def rest(self, seconds: float) -> None:
        """Read no more for a moment, once all that has arrived is read."""
        self._reader.rest(seconds)

    def after_reading(self, function: Callable[[], None]) -> None:
        """Call a function whenever all that has arrived was passed to `receive`."""
        self._reader.on_read = function

    def close(self, linger_ms: int = 500) -> None:
        """Close the port, after a moment for what was just sent. Idempotent."""
        if not self._sock.closed:
            self._bundles.flush()
            self._door.close()
            self._sock.setsockopt(zmq.LINGER, linger_ms)
            self._reader.stop()
            self._sock.close()
            self._doorman.close()
            self._context.term()

    def _judge(self, doorman: Any, parts: list[bytes]) -> None:
        """Answer zmq's question whether a key may connect (RFC 27)."""
        number = parts[1] if len(parts) > 1 else b""
        knows = len(parts) > 6 and parts[5] == b"CURVE" and parts[6] == self._allowed
        status = [b"200", b"OK"] if knows else [b"400", b"not a key of this group"]
        with contextlib.suppress(zmq.ZMQError):
            doorman.send_multipart([b"1.0", number, *status, b"", b""], zmq.NOBLOCK)

    def _take(self, parts: list[bytes]) -> None:
        identity, *rest = parts
        if not handle_each(rest, lambda header, payload: self._receive(identity, header, payload)):
            self.send(identity, encode_frame({"t": "again"}))


class NodeSocket:
    """A node agent's connection to the head."""

    def __init__(self, endpoint: str, server_key: str, secret: str, receive: Callable[[Header, bytes], None]) -> None:
        """Begin to connect."""
        self.is_refused = False  # the head does not accept the key, or is not the one whose key we have
        self.is_over = False  # the connection has ended
        self._receive = receive
        self._context: Any = zmq.Context.instance()
        self._sock = self._context.socket(zmq.DEALER)
        options: dict[int, Any] = {
            zmq.CURVE_SERVERKEY: server_key.encode(),
            zmq.CURVE_PUBLICKEY: zmq.curve_public(secret.encode()),
            zmq.CURVE_SECRETKEY: secret.encode(),
            zmq.SNDHWM: 0,
            zmq.RCVHWM: 0,
            zmq.MAXMSGSIZE: MAX_MESSAGE_BYTES,
            zmq.RECONNECT_IVL: -1,  # messages that zmq would drop then must be sent again (`is_over`)
        }
        for option, value in options.items():
            self._sock.setsockopt(option, value)
        failures = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
        failures |= zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
        monitor = self._sock.get_monitor_socket(failures | zmq.EVENT_DISCONNECTED)
        self._monitor = _Reader(monitor, self._on_failure)
        self._sock.setsockopt(zmq.IPV6, int(endpoint.startswith("[")))
        path = endpoint.removeprefix(UNIX)
        self._sock.connect(f"tcp://{endpoint}" if path == endpoint else f"ipc://{path}")
        self._reader = _Reader(self._sock, self._take)
        self._bundles = _Bundles(self._send)

    def send(self, frame: bytes) -> None:
        """Send soon, with what else is sent now, without ever waiting."""
        self._bundles.add(b"", frame)

    def _send(self, _: bytes, frames: bytes) -> None:
        with contextlib.suppress(zmq.ZMQError):
            self._sock.send(frames, zmq.NOBLOCK)
        self._reader.look_soon()

    def close(self, linger_ms: int = 0) -> None:
        """Close the socket, after at most this long for frames that were sent. Idempotent."""
        if not self._sock.closed:
            self._bundles.flush()
            with contextlib.suppress(zmq.ZMQError):
                self._sock.disable_monitor()
            self._monitor.close()
            self._sock.setsockopt(zmq.LINGER, linger_ms)
            self._reader.stop()
            self._sock.close()

    def _on_failure(self, parts: list[bytes]) -> None:
        self.is_over = True
        self.is_refused = self.is_refused or parse_monitor_message(parts)["event"] != zmq.EVENT_DISCONNECTED

    def _take(self, parts: list[bytes]) -> None:
        if not handle_each(parts, self._receive):
            self.is_over = True


def handle_each(parts: list[bytes], receive: Callable[[Header, bytes], None]) -> bool:
    """Handle each frame in a message; return False if something is lost that only another connection brings again.

    A frame that cannot be handled costs nothing but itself: each has a number, so that all after it would be refused if
    one of them was left out.
    """
    decoder = FrameDecoder()
    frames: Iterator[tuple[Header, bytes]] = decoder.feed(b"".join(parts))
    while True:
        try:
            frame = next(frames, None)
        except FrameError as err:
            log.warning("Another machine sent what is no message: %s", err)
            return False
        if frame is None:
            return not decoder.pending_bytes
        try:
            receive(*frame)
        except LostError as err:
            log.warning("The link to another machine is opened again: %s", err)
            return False
        except Exception:  # the outermost level of a message
            log.exception("A message of another machine cannot be handled")


async def reachable(endpoints: list[str]) -> tuple[str, str] | None:
    """Return the first endpoint that accepts a connection, by its address, and this machine's address on the way there.

    Raises:
        ConnectionRefusedError: each was refused by its machine, so that nothing listens there any more.
    """

    async def probe(endpoint: str) -> tuple[str, str]:
        if endpoint.startswith(UNIX):
            _, writer = await within(REDIAL_SECONDS, asyncio.open_unix_connection(endpoint.removeprefix(UNIX)))
            writer.close()
            return endpoint, ""
        host, _, port = endpoint.rpartition(":")
        _, writer = await within(REDIAL_SECONDS, asyncio.open_connection(host.strip("[]"), int(port)))
        address, there = (str(writer.get_extra_info(which)[0]) for which in ("sockname", "peername"))
        writer.close()
        return endpoint_of(there, int(port)), address

    probes, num_refused = [asyncio.ensure_future(probe(endpoint)) for endpoint in endpoints], 0
    try:
        for attempt in probes:  # in the order that the head prefers, all at the same time
            try:
                return await attempt
            except ConnectionRefusedError:
                num_refused += 1
            except (OSError, asyncio.TimeoutError, ValueError):
                pass
    finally:
        for attempt in probes:
            attempt.cancel()
        await asyncio.gather(*probes, return_exceptions=True)
    if num_refused == len(endpoints):
        raise ConnectionRefusedError
    return None
