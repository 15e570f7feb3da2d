"""Entry point of the agent process: `boot.py agent <group directory>`."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from jupyter_dist.agent.processes.starting.environment import widen_open_files
from jupyter_dist.system.memory import keep_present_objects
from jupyter_dist.system.processes import adopt_orphans
from jupyter_dist.system.sparing import log_sparingly

from .agent import Agent
from .requests import handlers_of


def main(argument: str) -> int:
    """Run an agent in the group directory `argument` until it ends."""
    # Our own files are private; files of cells get the umask that the server was started with (rank/start/shim.py).
    os.environ["JUPYTER_DIST_UMASK"] = f"{os.umask(0o077):o}"
    log_sparingly()
    adopt_orphans()
    widen_open_files()
    keep_present_objects()
    asyncio.run(_serve(Path(argument)))
    return 0


async def _serve(directory: Path) -> None:
    agent = Agent(directory, handlers_of)
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(signum, agent.stop)
    # Ctrl-C in the server's terminal must not reach the group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    await agent.run()
