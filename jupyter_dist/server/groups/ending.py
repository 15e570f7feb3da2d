"""Ends the processes of a group: asks its agent, then kills it."""

from __future__ import annotations

import contextlib
import signal

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.server.mirror.link import AgentLink
from jupyter_dist.server.spawner.process import AgentProcess

SHUTDOWN_SECONDS = 20.0
GONE_SECONDS = 10.0


async def end_agent(link: AgentLink, process: AgentProcess | None, group: str) -> list[str]:
    """End an agent gracefully, or kill it; return the processes that had to be killed.

    Raises:
        JupyterDistError: `timed_out`, if the agent cannot be ended.
    """
    killed: list[str] = []
    asked = link.answers
    if asked:
        with contextlib.suppress(JupyterDistError):
            answer, _ = await link.request("shutdown", timeout_seconds=SHUTDOWN_SECONDS)
            killed = list(answer["killed"])
    if process is None or (asked and await process.wait(GONE_SECONDS)):
        return killed
    process.ask_to_end()
    if not asked and await process.wait(GONE_SECONDS):
        return killed
    process.signal(signal.SIGKILL)
    if await process.wait(GONE_SECONDS):
        return [*killed, "The group's agent did not exit in time and was killed."]
    message = say("The agent of group '%1' (process %2) cannot be ended: it hangs in the kernel.", group, process.pid)
    raise JupyterDistError("timed_out", message, say("It may be waiting for a disk or a device. Try again later."))


async def end_keeper(keeper: AgentProcess | None) -> None:
    """Wait for an agent's keeper, which ends the processes that ranks started, or kill the keeper."""
    if keeper is not None and not await keeper.wait(GONE_SECONDS):
        keeper.signal(signal.SIGKILL)
