"""The server's connection to one agent: requests with deadlines, and the agent's messages."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.wire import earlier
from jupyter_dist.protocol.wire.specs import OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION
from jupyter_dist.transport.frames import FrameError, Header, pack, unpack
from jupyter_dist.transport.questions import Questions
from jupyter_dist.transport.stream import FrameStream
from jupyter_dist.transport.tasks import start_task

CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 15.0
MAX_BUSY_SECONDS = 0.01

Take = Callable[[Header, bytes], None]

log = logging.getLogger(__name__)


class AgentLink:
    """One connection. When it is lost, every open request fails and `on_lost` is called once."""

    def __init__(
        self,
        socket_path: Path,
        server_id: str,
        on_message: Callable[[Header, bytes], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._path = socket_path
        self._server_id = server_id
        self._on_message = on_message
        self._on_lost = on_lost
        self._stream: FrameStream | None = None
        self._reader: asyncio.Task[None] | None = None
        self.received_at = 0.0  # monotonic time of its last message
        self.is_silent = False  # alive, but did not answer in time
        self._protocol = PROTOCOL_VERSION  # of the agent
        self.version = ""  # of its jupyter_dist
        self._questions: Questions[tuple[Header, bytes]] = Questions()

    @property
    def is_open(self) -> bool:
        """Whether requests can be made."""
        return self._stream is not None

    @property
    def answers(self) -> bool:
        """Whether requests can be made, and the agent is not known to be silent."""
        return self._stream is not None and not self.is_silent

    async def open(self, take: Take, hello_seconds: float = REQUEST_SECONDS, version: str = "") -> None:
        """Connect to the agent, send `hello` and handle its answer; `version` of jupyter_dist is the agent's.

        Raises:
            JupyterDistError: `agent_unreachable`, `timed_out`, or `incompatible`.
        """
        try:
            self._stream = await FrameStream.connect(str(self._path), CONNECT_SECONDS)
        except OSError as err:
            raise self._unreachable() from err
        stream = self._stream
        self._reader = start_task(self._read(stream), "from agent", lambda _: self._lost(stream))
        versions = {"protocol": PROTOCOL_VERSION, "oldest_protocol": OLDEST_PROTOCOL_VERSION}
        self.version = version

        def take_hello(header: Header, payload: bytes) -> None:
            self._protocol = header["protocol"]
            take(header, payload)

        try:
            await self.request("hello", b"", hello_seconds, take_hello, **versions, server=self._server_id)
        except BaseException:
            await self.close()
            raise

    async def request(
        self,
        t: str,
        payload: bytes = b"",
        timeout_seconds: float = REQUEST_SECONDS,
        take: Take | None = None,
        **fields: Any,
    ) -> tuple[Header, bytes]:
        """Send a request and return the answer; `take` gets it in order with the agent's other messages.

        Raises:
            JupyterDistError: the agent's error, `agent_unreachable` or `timed_out`; `incompatible`, if the agent is of
                an earlier version, which cannot do it.
        """
        if self._stream is None:
            raise self._unreachable()
        stream = self._stream
        if self._protocol == earlier.FIRST_PROTOCOL and t != "hello":
            fields = earlier.fields_of_first(t, fields, self.version)

        def send(number: int) -> None:
            header = {"t": t, "id": number}
            if t == "hello":  # the one message that every version understands
                stream.send({**header, **fields}, payload)
            else:
                stream.send(*pack(header, fields, payload))

        try:
            return await self._questions.ask(send, timeout_seconds, take and (lambda answer: take(*answer)))
        except JupyterDistError as err:
            if earlier.is_unknown(t, err):
                raise earlier.cannot(t, self.version) from err
            raise
        except FrameError as err:
            raise JupyterDistError("too_large", say("The request is too large: %1.", err)) from err
        except asyncio.TimeoutError as err:
            raise JupyterDistError(
                "timed_out",
                say("The group's agent did not answer '%1' within %2 s.", t, f"{timeout_seconds:g}"),
                say("The machine may be overloaded. The request may still be carried out: check before you retry."),
            ) from err

    async def responds(self, seconds: float) -> bool:
        """Ping the agent; return whether it answered within this time."""
        try:
            await self.request("ping", timeout_seconds=seconds)
        except JupyterDistError:
            return False
        return True

    async def close(self) -> None:
        """Close the connection; the agent keeps running. Idempotent; `on_lost` is not called."""
        stream, self._stream = self._stream, None
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
            self._reader = None
        if stream is not None:
            stream.close()
        self._questions.fail(self._unreachable)

    def drop(self) -> None:
        """End the connection as if it was lost: `on_lost` is called."""
        if self._stream is not None:
            self._lost(self._stream)

    async def _read(self, stream: FrameStream) -> None:
        with contextlib.suppress(EOFError, OSError, FrameError):
            yielded_at = time.monotonic()
            while stream is self._stream:  # what was received before it was dropped is of an older state
                header, payload = unpack(*await stream.recv())
                self.received_at = time.monotonic()
                self._dispatch(header, payload)
                # Buffered messages are received without a pause, so let other tasks run during a flood.
                if time.monotonic() - yielded_at > MAX_BUSY_SECONDS:
                    await asyncio.sleep(0)
                    yielded_at = time.monotonic()
        self._lost(stream)

    def _lost(self, stream: FrameStream) -> None:
        stream.abort()
        if self._stream is stream:
            self._stream = None
            self._questions.fail(self._unreachable)
            self._on_lost()

    def _dispatch(self, header: Header, payload: bytes) -> None:
        if header.get("t") != "answer":
            try:
                self._on_message(header, payload)
            except Exception:  # the outermost level of the reading task: one bad message must not end the connection
                log.exception("jupyter_dist: cannot handle a '%s' message", header.get("t"))
            return
        if header.get("ok"):
            self._questions.answer(header.get("id"), (header, payload))
        else:
            self._questions.refuse(header.get("id"), JupyterDistError.from_dict(header.get("error")))

    def _unreachable(self) -> JupyterDistError:
        return JupyterDistError(
            "agent_unreachable",
            say("The group's agent cannot be reached."),
            say("It has ended or is stuck. See agent.log in %1.", self._path.parent),
        )
