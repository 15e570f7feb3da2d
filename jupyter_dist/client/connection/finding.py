"""Which of several servers answers first, and why the others do not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from jupyter_dist.client.servers import Server
from jupyter_dist.protocol.errors import JupyterDistError

from .http import Api, SilentServerError

AGAIN_AFTER_SECONDS = (0.0, 0.2, 1.0)  # a broken connection does not mean that the server's process has ended
PROBE_SECONDS = 5.0  # how long the first of several servers is preferred, if it does not answer
ANSWER_SECONDS = 30.0  # a server on a busy machine


@dataclass(frozen=True)
class Found:
    """The server to use; without one, the error of each server that was asked."""

    server: Server | None
    errors: dict[Server, JupyterDistError] = field(default_factory=dict)

    def raise_for_silent(self, *, also_private: bool) -> None:
        """Raise the error of a server that runs but did not answer: its groups must not be taken for gone."""
        for server, error in self.errors.items():
            if isinstance(error, SilentServerError) and (also_private or not server.is_private):
                raise error


async def first_usable(servers: Iterable[Server]) -> Found:
    """Find the first server that answers; a later one only if those before it are silent for PROBE_SECONDS."""
    asked = {asyncio.create_task(_error_of(server)): server for server in servers}

    def answered() -> Server | None:
        return next((server for task, server in asked.items() if task.done() and task.result() is None), None)

    try:
        deadline = time.monotonic() + PROBE_SECONDS
        for task, server in asked.items():
            await asyncio.wait([task], timeout=max(0.0, deadline - time.monotonic()))
            if task.done() and task.result() is None:
                return Found(server)
        for done in asyncio.as_completed(asked):
            await done
            if (found := answered()) is not None:
                return Found(found)
        results = {server: task.result() for task, server in asked.items()}
        return Found(None, {server: error for server, error in results.items() if error is not None})
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


async def _error_of(server: Server) -> JupyterDistError | None:
    """Ask a server for anything; return why it cannot be used, or None."""
    api = Api(server)
    error: JupyterDistError | None = None
    try:
        for pause in AGAIN_AFTER_SECONDS:
            await asyncio.sleep(pause)
            try:
                await api.ask("GET", timeout_seconds=ANSWER_SECONDS)
                return None
            except JupyterDistError as err:
                error = err
            # Otherwise the server has no jupyter_dist, or its token is not known here; or it has not answered in time.
            if error.code != "server_gone" or isinstance(error, SilentServerError):
                break
        return error
    finally:
        api.close()
