"""Node agents on a Ray cluster: a placement group with a bundle for each node, and an actor in each (decision 24).

Ray is never imported here, but only in `driver.py`, a process in the interpreter of the group, which writes the events
into the job's folder. The driver outlives the server, and Ray ends its actors when it ends, in whatever way.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from traitlets import Unicode

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.server.launchers.allocation import (
    Allocated,
    Allocation,
    Ended,
    EndsSoon,
    Event,
    NotKnown,
    Queued,
    Wanted,
    launcher_failed,
    unwritten,
)
from jupyter_dist.server.launchers.launcher import Availability, Launcher
from jupyter_dist.server.launchers.nodefiles import NodeFiles
from jupyter_dist.server.launchers.tools import Detached, ToolError, run, start_detached
from jupyter_dist.server.traits import Seconds
from jupyter_dist.system.files.jsonfile import read_json
from jupyter_dist.system.files.private import write_private
from jupyter_dist.system.inherited import without_credentials

from .options import AUTO, OPTIONS, bundles
from .words import why

DRIVER = Path(__file__).with_name("driver.py")
_DRIVER_CODE = DRIVER.read_text()  # of this version, also after an upgrade
FOLDER = "nodes"
JOB = "job.json"  # read by the driver
STATUS = "status.json"  # written by the driver
ACCEPT_POLL_SECONDS = 0.05
PROBE_SECONDS = 9.0
PROBE_KEPT_SECONDS = 20.0  # asking takes Ray a second or two of CPU time
ABSENT_SECONDS = 30.0  # an adopted driver that has not written anything by then was never started
MAX_LOG_BYTES = 1000
GRACE_SECONDS = 30.0  # Ray ends actors, not the processes that they have started


class RayLauncher(Launcher):
    """Groups on the nodes of a Ray cluster, of which the server's machine is one."""

    name: ClassVar[str] = "ray"
    label: ClassVar[str] = "Ray"
    options = OPTIONS
    reserves_by_ranks = True
    nodes_get_files: ClassVar[bool] = True
    engine_variables = ("RAY_",)

    python = Unicode(
        help="The Python that has ray, for the process that asks Ray for nodes. Empty: that of the group."
    ).tag(config=True)
    connect_seconds = Seconds(60.0, min=1.0, help="How long connecting to the cluster may take.").tag(config=True)

    lease_seconds = Seconds(
        30.0, min=1.0, help="How long nodes keep running without that process, if Ray's head is gone as well."
    ).tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._probed: tuple[float, Availability] | None = None

    async def probe(self) -> Availability:
        """Ask the cluster for its free resources, if the Python of the server (or `python`) has ray."""
        if self._probed is None or time.monotonic() - self._probed[0] > PROBE_KEPT_SECONDS:
            self._probed = time.monotonic(), await self._probe()
        return self._probed[1]

    async def _probe(self) -> Availability:
        command = [self.python or sys.executable, "-c", _DRIVER_CODE, "probe", self.defaults.get("address", AUTO)]
        try:
            said = await run(command, without_credentials(os.environ), PROBE_SECONDS)
            found = json.loads(said.out.splitlines()[-1])  # Ray may print more
            return Availability(is_usable=found["usable"] is True, text=why(found["why"]))
        except ToolError as err:
            return Availability(is_usable=False, text=say("%1 does not answer: %2", self.label, err))
        except (IndexError, ValueError, KeyError, TypeError):
            return Availability(
                is_usable=False, text=say("%1 does not answer: %2", self.label, said.problem[-MAX_LOG_BYTES:])
            )

    def fitted(self, options: Mapping[str, Any], ranks_per_node: int) -> Mapping[str, Any]:
        """Return the options with a CPU for each rank."""
        return {"cpus_per_node": ranks_per_node, **options}

    async def grace_seconds(self, options: Mapping[str, Any]) -> float:
        """Return how long node agents keep running after the actors that have started them."""
        return GRACE_SECONDS

    async def start(self, wanted: Wanted) -> Allocation:
        """Start the driver, and wait until it has asked Ray for the nodes."""
        try:
            files = await asyncio.to_thread(NodeFiles.create, wanted.directory / FOLDER, wanted.files)
            (files.folder / DRIVER.name).write_text(_DRIVER_CODE)  # Ray has workers search its folder for modules
            write_private(files.folder / JOB, json.dumps(_job(wanted, files, self.lease_seconds)))
        except OSError as err:
            raise launcher_failed(unwritten(err)) from err
        job = RayJob(self, wanted.directory, files, wanted.num_nodes)
        try:
            job.save()  # before Ray is asked, so that no server ever loses it
            await asyncio.to_thread(job.start, self.python or wanted.python, wanted.env.for_exec())
            await self._accepted(job)
        except BaseException:
            with contextlib.suppress(JupyterDistError):
                await job.end_driver(0.0)
            job.undo()
            raise
        return job

    def restore(self, directory: Path, files: NodeFiles, num_nodes: int, state: Mapping[str, Any]) -> Allocation:
        """Return the job whose driver an earlier server started."""
        job = RayJob(self, directory, files, num_nodes)
        job.driver = Detached(*map(int, state["driver"])) if state["driver"] else None
        return job

    async def look(self, allocations: Collection[Allocation]) -> None:
        """Read the files of the drivers."""
        for allocation in allocations:
            assert isinstance(allocation, RayJob)
            allocation.look()

    async def _accepted(self, job: RayJob) -> None:
        """Wait until the driver is connected. Raises JupyterDistError `launcher_failed` or `timed_out`."""
        deadline = time.monotonic() + self.connect_seconds
        while job.said().get("state", "connecting") == "connecting":
            if (job.driver is None or not job.driver.runs) and job.said().get("state") in (None, "connecting"):
                raise launcher_failed(job.failure())
            if time.monotonic() > deadline:
                message = say("Ray did not answer within %1 s.", f"{self.connect_seconds:g}")
                raise JupyterDistError("timed_out", message, say("'ray status' says how the cluster is."))
            await asyncio.sleep(ACCEPT_POLL_SECONDS)
        if job.said()["state"] == "failed":
            raise launcher_failed(job.failure(), say("'jupyter dist launchers ray' says what there is."))


class RayJob(Allocation):
    """One driver, and the files that it has written."""

    def __init__(self, launcher: Launcher, directory: Path, files: NodeFiles, num_nodes: int) -> None:
        super().__init__(launcher, directory, files, num_nodes)
        self.driver: Detached | None = None
        self._is_cancelled = False
        self._warned_of: float | None = None
        self._known_since = time.monotonic()

    def start(self, python: str, env: Mapping[str, str]) -> None:
        """Start the driver. Raises JupyterDistError `launcher_failed`, OSError."""
        command = [python, str(self.files.folder / DRIVER.name), "job", str(self.files.folder)]
        with open(self.files.open_engine_log(), "ab") as log:
            try:
                self.driver = start_detached(command, env, str(self.files.folder), log.fileno())
            except ToolError as err:
                hint = say("Set RayLauncher.python to a Python that has ray, or choose another environment.")
                raise launcher_failed(
                    say("The process that asks Ray for nodes cannot be started: %1", err), hint
                ) from err
        self.save()

    def state(self) -> dict[str, Any]:
        """Return the identity of the driver; None while it is being started."""
        return {"driver": [self.driver.pid, self.driver.started] if self.driver else None}

    def said(self) -> dict[str, Any]:
        """Return the last status that the driver has written; empty if there is none yet."""
        try:
            found = read_json(self.files.folder / STATUS)
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def look(self) -> None:
        """Publish the news of the driver."""
        self._find_driver()
        if self.driver is None:
            if time.monotonic() - self._known_since > ABSENT_SECONDS:
                self._end(say("The process that asks Ray for nodes was never started."))
            return
        lives = self.driver.runs  # before its files: then its last status is read, too
        said = self.said()
        if said.get("state") in ("ended", "failed"):
            self._end(_text(said))
        elif not lives:
            self._end(join(self.failure(), say("Ray ends the nodes that it has started for it.")))
        elif (event := _event(said)) is not None:
            self.publish(event)
            ends_at = event.ends_at if isinstance(event, Allocated) else None
            if ends_at is not None and ends_at != self._warned_of:
                self._warned_of = ends_at
                why = say("Ray drains a node of the group: it is preempted, or about to be removed.")
                self.publish(EndsSoon(ends_at, why))

    def failure(self) -> str:
        """Return why the driver has ended, in sentences."""
        said = self.said()
        if said.get("state") == "failed":
            return _text(said)
        log = self.files.log(None, MAX_LOG_BYTES)
        return join(say("The process that asks Ray for nodes has ended."), say("It printed: %1", log) if log else "")

    async def cancel(self, grace_seconds: float) -> None:
        """Have the driver end the command on all nodes, and release them."""
        self._is_cancelled = True
        await self.end_driver(grace_seconds)
        self.look()

    async def end_driver(self, grace_seconds: float) -> None:
        """End the driver; if it has to be killed, Ray ends its actors. Raises JupyterDistError `timed_out`."""
        self._find_driver()
        if self.driver is None:
            return
        await self.driver.end(grace_seconds)
        if self.driver.runs:
            message = say("The process that asks Ray for nodes (%1) cannot be ended.", self.driver.pid)
            raise JupyterDistError("timed_out", message, say("Ray keeps its nodes reserved until it has ended."))

    def _find_driver(self) -> None:
        """Find the driver of a server that was killed before it had saved the process id."""
        if self.driver is None:
            said = self.said()
            with contextlib.suppress(KeyError, TypeError, ValueError):
                self.driver = Detached(int(said["pid"]), int(said["started"]))

    def _end(self, why: str) -> None:
        self.publish(Ended(why))


def _text(said: Mapping[str, Any]) -> str:
    with contextlib.suppress(LookupError, TypeError, ValueError):  # of a driver of another version
        return why(said["why"]) if said.get("why") else ""
    return str(said.get("text") or said.get("state"))


def _event(said: Mapping[str, Any]) -> Event | None:
    state, text = said.get("state"), _text(said)
    if state == "queued":
        return Queued(text)
    if state == "not_known":
        return NotKnown(text)
    if state == "allocated":
        hosts, ends_at = tuple(map(str, said.get("hosts", ()))), said.get("ends_at")
        return Allocated(hosts, str(said.get("job_id", "")), float(ends_at) if ends_at else None)
    return None


def _job(wanted: Wanted, files: NodeFiles, lease: float) -> dict[str, Any]:
    """Return the content of JOB, without Ray's variables: they describe the server's machine, not the nodes."""
    copies = files.copies(wanted.files)
    return {
        "name": f"jupyter-dist-{wanted.name}-{wanted.group_id}",
        "address": wanted.options.get("address", AUTO),
        "bundles": bundles(wanted),
        "runtime_env": wanted.options.get("runtime_env", {}),
        "num_nodes": wanted.num_nodes,
        "command": [copies.get(word, word) for word in wanted.command],
        "files": list(copies.values()),
        "env": {name: value for name, value in wanted.env.for_private_file().items() if not name.startswith("RAY_")},
        "cwd": wanted.cwd,
        "lease_seconds": lease,
    }
