"""The head's ends of its group's tunnels: a program per node, started by ssh or srun, and again when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence

from jupyter_dist.agent.nodes.link.joinfile import python_words
from jupyter_dist.agent.nodes.link.places import socket_path
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.system.inherited import without_credentials
from jupyter_dist.system.limits import within
from jupyter_dist.transport.tasks import start_task

from .channels import HELLO, Channels

AGAIN_SECONDS = 2.0
HELLO_SECONDS = 60.0
MAX_GREETING_BYTES = 64 << 10
MAX_ERROR_BYTES = 2000
END_SECONDS = 3.0

OnNews = Callable[[int, str | None], None]  # the node, and why it has no tunnel; None: it has one


class Tunnels:
    """The tunnels to the nodes of a group, by number of the node."""

    def __init__(self, group_id: str, template: Sequence[str], port: int, on_news: OnNews) -> None:
        """Open none yet.

        Args:
            group_id: of the group.
            template: the words that start a program on a node, with {host}, {job} and {node}.
            port: of the head, on this machine.
            on_news: called when a tunnel is open, or has ended.
        """
        self._group_id = group_id
        self._template = tuple(template)
        self._port = port
        self._on_news = on_news
        self._pids: set[int] = set()
        self._running: dict[int, tuple[tuple[str, ...], asyncio.Task[None]]] = {}

    def open(self, hosts: Sequence[str], job: str, code: str) -> None:
        """Have a tunnel to each of these hosts, in the order of the nodes; tunnels that are open already stay.

        The programs on nodes run the archive `code`; if it is empty, the installed package.
        """
        for node, host in enumerate(hosts):
            command = self.command(host, job, node, code)
            known, task = self._running.get(node, (None, None))
            if known == command:
                continue
            if task is not None:
                task.cancel()
            self._running[node] = command, start_task(self._keep(node, host, command), f"tunnel to node {node}")

    @property
    def children(self) -> set[int]:
        """Return the programs that this process started, and reaps itself."""
        return set(self._pids)

    def command(self, host: str, job: str, node: int, code: str) -> tuple[str, ...]:
        """Return the command that runs the node's end there."""
        program = [sys.executable, code, "bridge"] if code else python_words("bridge")
        own = [*program, str(socket_path(self._group_id, node))]
        words = [word.format(host=host, job=job, node=node) for word in self._template]
        if os.path.basename(words[0]) == "ssh":  # its arguments become a line for a shell
            own = [shlex.quote(word) for word in own]
        return (*words, *own)

    async def close(self) -> None:
        """End all tunnels. Idempotent."""
        tasks = [task for _, task in self._running.values()]
        self._running.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, node: int, host: str, command: Sequence[str]) -> None:
        while True:
            self._on_news(node, say("The tunnel to %1 ended. %2", host, await self._run_once(node, command)))
            await asyncio.sleep(AGAIN_SECONDS)

    async def _run_once(self, node: int, command: Sequence[str]) -> str:
        """Run a tunnel until it ends; return how it ended."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=_environment(),
                start_new_session=True,
            )
        except OSError as err:
            return say("'%1' cannot be started: %2.", command[0], err.strerror)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._pids.add(process.pid)
        errors = asyncio.ensure_future(_end_of(process.stderr))
        try:
            if not await within(HELLO_SECONDS, _greeted(process.stdout)):
                return await within(END_SECONDS, errors)
            self._on_news(node, None)
            await Channels(process.stdout, process.stdin).run(self._connect)
            return await within(END_SECONDS, errors)
        except asyncio.TimeoutError:
            return say("It did not answer within %1 s.", f"{HELLO_SECONDS:g}")
        finally:
            errors.cancel()
            await _end(process)
            self._pids.discard(process.pid)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("localhost", self._port)


def _environment() -> dict[str, str]:
    """Return the variables of this process without the credentials and the job of its server, which may be in Slurm."""
    kept = without_credentials(os.environ)
    return {name: value for name, value in kept.items() if not name.startswith("SLURM_") or name == "SLURM_CONF"}


async def _greeted(reader: asyncio.StreamReader) -> bool:
    """Read until the node's end has greeted; return False if it ended before."""
    num_bytes = 0
    while line := await reader.readline():
        if line.endswith(HELLO):
            return True
        num_bytes += len(line)
        if num_bytes > MAX_GREETING_BYTES:
            return False
    return False


async def _end_of(reader: asyncio.StreamReader) -> str:
    text = b""
    while data := await reader.read(4096):
        text = (text + data)[-MAX_ERROR_BYTES:]
    return " ".join(text.decode(errors="replace").split())


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the program, whose other end ends with its input."""
    if process.stdin is not None:
        process.stdin.close()
    for signum in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(asyncio.TimeoutError):
            await within(END_SECONDS, process.wait())
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signum)
