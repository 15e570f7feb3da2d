"""Runs a command of the server's configuration when a long cell has ended, failed, or cannot end.

Only the configuration names the command; nothing that a page or a program sends becomes part of it. The command gets
the event as JSON on its standard input.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.operations import why_stopped
from jupyter_dist.protocol.states import FINAL_EXECUTION_STATES
from jupyter_dist.system.limits import within

if TYPE_CHECKING:
    from .group import ManagedGroup
    from .manager import GroupManager

COMMAND_SECONDS = 30.0
MAX_AT_ONCE = 4
MAX_WAITING = 100
MAX_KNOWN = 10_000
MAX_SAID = 500

log = logging.getLogger(__name__)


class Notices:
    """Follows all executions of a server, and runs the command for executions that ran long enough."""

    def __init__(self, manager: GroupManager, command: Sequence[str], seconds: float) -> None:
        """`seconds`: how long a cell must have run."""
        self._manager = manager
        self._command = list(command)
        self._seconds = seconds
        self._since = time.time()
        self._told: dict[tuple[str, str], None] = {}  # execution and event, oldest first
        self._hanging: dict[str, asyncio.TimerHandle] = {}  # by execution: runs the command later
        self._waiting: deque[dict[str, Any]] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._forget = manager.listen(self._on_topic) if self._command else None

    async def stop(self) -> None:
        """Run no more commands, and end running ones. Idempotent."""
        if self._forget is not None:
            self._forget()
            self._forget = None
        for timer in self._hanging.values():
            timer.cancel()
        self._waiting.clear()
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _on_topic(self, topic: tuple[Any, ...]) -> None:
        if topic[0] == "execution":
            self._look(topic[1], topic[2])

    def _look(self, group_id: str, execution_id: str) -> None:
        try:
            group = self._manager.get(group_id)
            execution = group.mirror.executions.get(execution_id)
        except JupyterDistError:  # the group was removed meanwhile
            return
        if execution["silent"] or execution["started_at"] is None:
            return
        if execution["state"] in FINAL_EXECUTION_STATES:
            self._forget_hang(execution_id)
            ended = execution["ended_at"] or time.time()
            if ended - execution["started_at"] >= self._seconds and ended >= self._since:  # earlier: another server
                self._tell(group, execution, execution["state"])
        elif why_stopped(execution) is None:
            self._forget_hang(execution_id)
        elif (left := self._seconds - (time.time() - execution["started_at"])) <= 0:
            self._tell(group, execution, "hangs")
        elif execution_id not in self._hanging:
            look = lambda: self._look(group_id, execution_id)  # noqa: E731
            self._hanging[execution_id] = asyncio.get_running_loop().call_later(left, look)

    def _forget_hang(self, execution_id: str) -> None:
        if (timer := self._hanging.pop(execution_id, None)) is not None:
            timer.cancel()

    def _tell(self, group: ManagedGroup, execution: models.ExecutionModel, what: str) -> None:
        """Run the command, once for each event of an execution."""
        event = (execution["id"], what)
        if event in self._told:
            return
        if len(self._told) == MAX_KNOWN:
            del self._told[next(iter(self._told))]
        self._told[event] = None
        if len(self._waiting) >= MAX_WAITING:
            log.warning("jupyter_dist: %d notices wait for the command; one of %s is lost.", MAX_WAITING, group.name)
            return
        line = group.mirror.executions.line(execution["id"])
        self._waiting.append({**notice_of(group.name, execution, what), "line": line})
        self._run_next()

    def _run_next(self) -> None:
        while self._waiting and len(self._running) < MAX_AT_ONCE:
            task = asyncio.ensure_future(self._run(self._waiting.popleft()))
            self._running.add(task)
            task.add_done_callback(self._ran)

    def _ran(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("jupyter_dist: the notice command failed", exc_info=error)
        self._run_next()

    async def _run(self, notice: dict[str, Any]) -> None:
        """Run the command for one notice; a failure goes to the server's log."""
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.STDOUT, start_new_session=True
            )
        except OSError as err:
            log.warning("jupyter_dist: the notice command %r cannot be run: %s", self._command[0], err)
            return
        try:
            said, _ = await within(COMMAND_SECONDS, process.communicate(json.dumps(notice).encode() + b"\n"))
        except asyncio.TimeoutError:
            log.warning("jupyter_dist: the notice command did not end within %g s.", COMMAND_SECONDS)
        else:
            if process.returncode:
                words = said[-MAX_SAID:].decode("utf-8", "replace").strip()
                log.warning("jupyter_dist: the notice command ended with status %d: %s", process.returncode, words)
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # with the processes that it has started
                await process.wait()


def notice_of(group: str, execution: models.ExecutionModel, what: str) -> dict[str, Any]:
    """Return the standard input of the command: `event` is `hangs`, or the state in which the cell ended."""
    started, ended = execution["started_at"] or 0.0, execution["ended_at"] or time.time()
    error = execution["error"]
    seconds = round(ended - started, 1)
    cell = f"Cell [{execution['execution_count']}] on {group} (ranks {execution['ranks']})"
    does = "cannot end" if what == "hangs" else f"ended: {what}"
    return {
        "event": what,
        "group": group,
        "execution_id": execution["id"],
        "execution_count": execution["execution_count"],
        "notebook": execution["notebook"],
        "ranks": execution["ranks"],
        "seconds": seconds,
        "message": why_stopped(execution) or (error["message"] if error else ""),
        "text": f"{cell} {does} after {seconds:g} s",
    }
