"""The server's end of the connection to one agent: requests with deadlines, and what the agent tells."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.frames import FrameError, Header
from jupyter_dist.protocol.specs import PROTOCOL_VERSION
from jupyter_dist.transport.stream import FrameStream

CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 15.0
MAX_BUSY_SECONDS = 0.01

log = logging.getLogger(__name__)


class AgentLink:
    """One connection. When it is lost every open request fails, and `on_lost` is called once."""

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
        self._answers: dict[int, asyncio.Future[tuple[Header, bytes]]] = {}
        self._ids = itertools.count(1)
        self._pidfd: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether requests can be made."""
        return self._stream is not None

    async def open(self) -> Header:
        """Connect and return the agent's answer to `hello`.

        Raises:
            JupyterDistError: `agent_unreachable` or `timed_out`.
        """
        try:
            self._stream = await FrameStream.connect(str(self._path), CONNECT_SECONDS)
        except OSError as err:
            raise self._unreachable() from err
        self._reader = asyncio.create_task(self._read(self._stream), name="from agent")
        try:
            hello, _ = await self.request("hello", protocol=PROTOCOL_VERSION, server=self._server_id)
        except JupyterDistError:
            await self.close()
            raise
        # Taken while the agent is known to live: whatever gets its number later is never signalled.
        self._forget_process()
        with contextlib.suppress(OSError):
            self._pidfd = os.pidfd_open(int(hello["group"]["agent_pid"]))
        return hello

    async def request(
        self, t: str, payload: bytes = b"", timeout_seconds: float = REQUEST_SECONDS, **fields: Any
    ) -> tuple[Header, bytes]:
        """Ask the agent and return its answer.

        Raises:
            JupyterDistError: what the agent answered, `agent_unreachable` or `timed_out`.
        """
        if self._stream is None:
            raise self._unreachable()
        request_id = next(self._ids)
        answer: asyncio.Future[tuple[Header, bytes]] = asyncio.get_running_loop().create_future()
        self._answers[request_id] = answer
        try:
            self._stream.send({"t": t, "id": request_id, **fields}, payload)
            return await asyncio.wait_for(answer, timeout_seconds)
        except FrameError as err:
            raise JupyterDistError("too_large", f"The request is too large: {err}.") from err
        except asyncio.TimeoutError as err:
            raise JupyterDistError(
                "timed_out",
                f"The group's agent did not answer '{t}' within {timeout_seconds:g} s.",
                "The machine may be overloaded. Try again; if it persists, shut the group down.",
            ) from err
        finally:
            self._answers.pop(request_id, None)

    def kill_agent(self) -> None:
        """End an agent that does not end by itself; its ranks die with it."""
        if self._pidfd is not None:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def wait_exit(self, seconds: float) -> bool:
        """Wait until the agent's process has ended, at most so long; whether it has."""
        if self._pidfd is None:
            return True
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(self._pidfd, ended.set)  # a pidfd becomes readable when its process ends
        try:
            await asyncio.wait_for(ended.wait(), seconds)
        except asyncio.TimeoutError:
            return False
        finally:
            loop.remove_reader(self._pidfd)
        return True

    async def close(self) -> None:
        """Drop the connection; the agent goes on. Idempotent; `on_lost` is not called."""
        stream, self._stream = self._stream, None
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
            self._reader = None
        if stream is not None:
            stream.close()
        self._fail_requests()
        self._forget_process()

    async def _read(self, stream: FrameStream) -> None:
        with contextlib.suppress(EOFError, OSError, FrameError):
            yielded_at = time.monotonic()
            while True:
                header, payload = await stream.recv()
                self._dispatch(header, payload)
                # What is buffered already is received without a pause: a flood must leave room for others.
                if time.monotonic() - yielded_at > MAX_BUSY_SECONDS:
                    await asyncio.sleep(0)
                    yielded_at = time.monotonic()
        stream.abort()
        if self._stream is stream:
            self._stream = None
            self._fail_requests()
            self._on_lost()

    def _dispatch(self, header: Header, payload: bytes) -> None:
        if header.get("t") != "answer":
            try:
                self._on_message(header, payload)
            except Exception:  # the edge of the reading task: one bad message must not end the connection
                log.exception("jupyter_dist: cannot handle a '%s' message", header.get("t"))
            return
        answer = self._answers.get(header.get("id", 0))
        if answer is None or answer.done():
            return  # it came after its deadline
        if header.get("ok"):
            answer.set_result((header, payload))
        else:
            answer.set_exception(JupyterDistError.from_dict(header.get("error")))

    def _fail_requests(self) -> None:
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(self._unreachable())

    def _forget_process(self) -> None:
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    def _unreachable(self) -> JupyterDistError:
        return JupyterDistError(
            "agent_unreachable",
            "The group's agent cannot be reached.",
            f"It has ended or is stuck; see agent.log in {self._path.parent}.",
        )
