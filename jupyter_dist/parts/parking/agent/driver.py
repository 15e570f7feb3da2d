"""Runs the driver's checkpoint of processes (checkpoint.py) with a time limit, and names its outcome."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Sequence
from typing import Any

from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.wire.specs import GroupSpec
from jupyter_dist.system.limits import within

from . import checkpoint

LEAST_SECONDS = 60.0
BYTES_PER_SECOND = 256 << 20  # an eighth of what was seen on an H200: 2 GB/s
KILL_SECONDS = 5.0


def why_not_for(spec: GroupSpec) -> str | None:
    """Return why the driver's checkpoint is not used for such a group, as the end of a sentence; None if it may be."""
    if not ACCELERATORS[spec.accelerator].has_checkpoint:
        return "the driver of these devices has no checkpoint of processes"
    if spec.is_on_nodes:
        return "the group is on several machines"
    # Seen on an H100 with two ranks on one device (facts:checkpoint_two of tests/gpu): kernels and memory are whole
    # after it, the first collective over NCCL is not. Ranks with a device each have not been seen, and may lose theirs.
    if spec.world_size > 1:
        return "after its checkpoint of several ranks, collectives have failed"
    return None


class DriverCheckpoint:
    """Checkpoints processes of this machine, one call at a time."""

    def __init__(self, program: str = checkpoint.__file__) -> None:
        self._program = program
        self._process: asyncio.subprocess.Process | None = None

    @property
    def children(self) -> set[int]:
        """Return the process that this one started and reaps itself."""
        return set() if self._process is None else {self._process.pid}

    async def why_not(self, pids: Sequence[int]) -> str | None:
        """Return why the driver cannot checkpoint these processes, as the end of a sentence; None if it can."""
        try:
            steps = await self._run("look", pids, LEAST_SECONDS)
        except JupyterDistError as err:
            return err.message
        wrong = next((step for step in steps if step["outcome"] != "ok" or step.get("state") != "running"), None)
        return None if wrong is None else str(wrong["outcome"] if wrong["outcome"] != "ok" else wrong["state"])

    async def park(self, pids: Sequence[int], num_bytes: int) -> None:
        """Move the device memory of processes to the host.

        Raises:
            JupyterDistError: `group_not_ready`; `resume` undoes what was done until then.
        """
        await self._checked("park", pids, num_bytes)

    async def resume(self, pids: Sequence[int], num_bytes: int) -> None:
        """Move the device memory of parked processes back.

        Raises:
            JupyterDistError: `group_not_ready`; what was done is kept, and the next call continues.
        """
        await self._checked("resume", pids, num_bytes)

    async def _checked(self, what: str, pids: Sequence[int], num_bytes: int) -> None:
        steps = await self._run(what, pids, LEAST_SECONDS + num_bytes / BYTES_PER_SECOND)
        failed = next((step for step in steps if step["outcome"] != "ok"), None)
        if failed is not None:
            message = say(
                "The driver's '%1' of process %2 failed: %3.", failed["step"], failed.get("pid"), failed["outcome"]
            )
            raise JupyterDistError("group_not_ready", message, say("Try again, or restart the group."))

    async def _run(self, what: str, pids: Sequence[int], seconds: float) -> list[dict[str, Any]]:
        """Run the program; return its steps.

        Raises:
            JupyterDistError: `group_not_ready`, if it cannot be started, does not end in time, or is killed.
        """
        arguments = (sys.executable, "-I", "-S", self._program, what, *map(str, pids))
        try:
            self._process = process = await asyncio.create_subprocess_exec(
                *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
            )
        except OSError as err:
            raise JupyterDistError("group_not_ready", say("The driver cannot be asked: %1.", err.strerror)) from err
        try:
            text, _ = await within(seconds, process.communicate())
        except asyncio.TimeoutError as err:
            message = say("The driver did not end '%1' within %2 s.", what, f"{seconds:.0f}")
            raise JupyterDistError("group_not_ready", message, say("Try again, or restart the group.")) from err
        finally:
            await self._end(process)
        steps = [json.loads(line) for line in text.decode("utf-8", "replace").splitlines() if line.startswith("{")]
        if process.returncode and all(step["outcome"] == "ok" for step in steps):
            raise JupyterDistError(
                "group_not_ready", say("The program that asks the driver ended with %1.", process.returncode)
            )
        return steps

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            with contextlib.suppress(asyncio.TimeoutError):  # stuck in the driver: it ends with the agent
                await within(KILL_SECONDS, process.wait())
        if process.returncode is not None:
            self._process = None
