"""The interface of launchers (docs/decisions/0017): the requests to an engine.

An engine queues, places, starts the same command once on each node, and ends it. It never handles ranks: they
belong to the node agents, which are that command.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from abc import ABCMeta, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from traitlets import MetaHasTraits

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.secrets import Secrets
from jupyter_dist.server.traits import Seconds

from .allocation import Allocation, Wanted, launcher_failed
from .common.command import COMMAND_OPTIONS, node_command, passed
from .common.limits import duration
from .common.network import NODE_OPTIONS
from .common.optionset import LauncherOptions
from .nodefiles import NodeFiles
from .options import Option

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Availability:
    """Whether a launcher can be used here, and what is free, or why it cannot, as a sentence."""

    is_usable: bool
    text: str
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # values that an option can have, by its name


class _AbstractTraits(ABCMeta, MetaHasTraits):
    """Lets a Configurable have abstract methods."""


class Launcher(LauncherOptions, metaclass=_AbstractTraits):
    """An engine that starts node agents. One object per server, created when it is first needed.

    A subclass has a `name`, a `label`, its `options`, and four methods: `probe`, `start`, `restore` and `look`.
    """

    common_options: ClassVar[tuple[Option, ...]] = (*NODE_OPTIONS, *COMMAND_OPTIONS)
    nodes_get_files: ClassVar[bool] = False  # of any size: also the code of the group (Wanted.files)
    engine_variables: ClassVar[tuple[str, ...]] = ()  # beginnings of variables that the engine's own tools need

    poll_seconds = Seconds(1.0, min=0.05, help="How often the engine is asked for the state of jobs.").tag(config=True)
    command_seconds = Seconds(30.0, min=1.0, help="How long a command of the engine may take.").tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._followed: set[Allocation] = set()
        self._follower: asyncio.Task[None] | None = None
        self._giving_up: dict[Allocation, asyncio.Task[None]] = {}

    @abstractmethod
    async def probe(self) -> Availability:
        """Return whether the engine can be used here, within seconds; never raises."""

    @abstractmethod
    async def start(self, wanted: Wanted) -> Allocation:
        """Hand the job to the engine; return when the engine has accepted it, without waiting for nodes.

        The options have been checked. Call `allocation.save()` before the engine is asked if a server that is killed
        meanwhile would lose the job; the state is saved after this method, too.

        Raises:
            JupyterDistError: `launcher_failed` with the engine's message, `timed_out`. No job is left then.
        """

    @abstractmethod
    def restore(self, directory: Path, files: NodeFiles, num_nodes: int, state: Mapping[str, Any]) -> Allocation:
        """Return the allocation that an earlier server saved (`Allocation.state`). Do not ask the engine now."""

    @abstractmethod
    async def look(self, allocations: Collection[Allocation]) -> None:
        """Ask the engine about all allocations at once, and publish their news; called every `poll_seconds`.

        The base class publishes the starts and ends that nodes write. Never raises because of the engine.
        """

    # -- called by the server ---------------------------------------------------------------------------------

    async def grace_seconds(self, options: Mapping[str, Any]) -> float:
        """Return how long nodes may keep running after the engine has asked them to end; 0: they end at once."""
        return 0.0

    async def submit(self, wanted: Wanted) -> Allocation:
        """Check the options, start the job, save it for the next server, and follow it until it ends.

        Raises:
            JupyterDistError: `bad_request` (see `check`), `launcher_failed` with the engine's message, `timed_out`.
            asyncio.CancelledError: the caller was cancelled; no job is left then.
        """
        options = self.fitted(self.check(wanted.options, wanted.num_nodes), wanted.most_ranks)
        starting = asyncio.ensure_future(self.start(self._prepared(wanted, options)))
        try:
            allocation = await asyncio.shield(starting)
        except asyncio.CancelledError:  # the engine may have the job already: a tool that runs is not undone
            if not starting.cancelled():
                await asyncio.shield(asyncio.ensure_future(self._withdraw(starting)))
            raise
        allocation.output_folder = _output_folder(wanted, options)
        if "max_wait" in options:
            allocation.max_wait_seconds = duration(options["max_wait"]) or 0.0
        try:
            allocation.save()  # without an await: a start that is cancelled now would leave a job without a server
        except OSError as err:  # the next server would not find the job
            await allocation.cancel(0.0)
            allocation.undo()
            raise launcher_failed(f"The state of the job cannot be saved: {err}.") from err
        self.follow(allocation)
        return allocation

    async def _withdraw(self, starting: asyncio.Future[Allocation]) -> None:
        """Wait until the engine has accepted or refused a job, and end the job: its group is not started any more."""
        try:
            allocation = await starting
        except (JupyterDistError, OSError):  # no job is left
            return
        try:
            await allocation.cancel(0.0)
            allocation.undo()
        except JupyterDistError as err:
            log.warning("jupyter_dist: a job whose group is gone may be left: %s", err)

    def _prepared(self, wanted: Wanted, options: Mapping[str, Any]) -> Wanted:
        """Return the nodes with the command and the variables that the options make of them."""
        return dataclasses.replace(
            wanted,
            options=options,
            python=wanted.command[0],
            command=node_command(options, wanted.command, wanted.cwd),
            env=Secrets(passed(options, wanted.env.for_exec(), self.engine_variables)),
        )

    def adopt(self, directory: Path, files: NodeFiles, num_nodes: int, state: Mapping[str, Any]) -> Allocation:
        """Return the allocation that an earlier server saved, and follow it until it ends."""
        allocation = self.restore(directory, files, num_nodes, state)
        self.follow(allocation)
        return allocation

    # -- following --------------------------------------------------------------------------------------------

    def follow(self, allocation: Allocation) -> None:
        """Look at the allocation every `poll_seconds` until it has ended."""
        self._followed.add(allocation)
        if self._follower is None or self._follower.done():
            self._follower = asyncio.create_task(self._follow(), name=f"follow {self.name}")

    async def detach(self) -> None:
        """Leave all jobs to the next server."""
        self._followed.clear()
        for task in self._giving_up.values():
            task.cancel()
        await asyncio.gather(*self._giving_up.values(), return_exceptions=True)
        if self._follower is not None:
            self._follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._follower

    async def _follow(self) -> None:
        while self._followed:
            try:
                await self._follow_once()
            except Exception:  # outermost level: without the next look, the end of a job would never be published
                log.exception("Cannot look at the jobs of %s; trying again in %s s", self.name, self.poll_seconds)
            await asyncio.sleep(self.poll_seconds)

    async def _follow_once(self) -> None:
        await self.look(list(self._followed))
        for allocation in list(self._followed):
            await asyncio.to_thread(allocation.files.read)
            allocation.publish_node_events()
            if allocation.is_overdue(time.monotonic()) and allocation not in self._giving_up:
                self._giving_up[allocation] = asyncio.create_task(self._give_up(allocation))
        self._followed = {allocation for allocation in self._followed if not allocation.has_ended}

    async def _give_up(self, allocation: Allocation) -> None:
        try:
            await allocation.give_up()
        except JupyterDistError as err:  # the next look tries again
            log.warning("jupyter_dist: a job that has waited too long is not cancelled yet: %s", err)
        finally:
            del self._giving_up[allocation]


def _output_folder(wanted: Wanted, options: Mapping[str, Any]) -> str | None:
    """Return the folder that gets the logs of a job when it is over."""
    folder = options.get("output_folder")
    return folder and str(Path(folder).expanduser() / f"{wanted.name}-{wanted.group_id}")
