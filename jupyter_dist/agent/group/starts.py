"""Starts, restarts and replaces the ranks of a group: what is checked, what is shown at once, and what runs then."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from jupyter_dist.agent.processes.ending import end_ranks, give_up, sweep
from jupyter_dist.agent.processes.failedstart import check_folder
from jupyter_dist.agent.processes.starters import RankStarter
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.states import HOW_TO_BE_READY
from jupyter_dist.protocol.wire.specs import ReplaceSpec
from jupyter_dist.transport.tasks import start_task

from .group import AgentGroup
from .replacing.replacement import Replacement, TakeBack
from .replacing.variables import NoVariables, VariableSource

log = logging.getLogger(__name__)


# What to do where no rank can be replaced.
_INSTEAD_OF_REPLACING: Mapping[str, str] = {
    **HOW_TO_BE_READY,
    "dead": say("All of its ranks are dead: restart it."),
}


class GroupStarts:
    """Decides, as the only place, whether ranks may be started now, and starts them in the background.

    `restart` and `replace_dead` raise what forbids them. Otherwise the group has its new state when they return.
    """

    def __init__(
        self, group: AgentGroup, starter: RankStarter, on_first_start_failed: Callable[[JupyterDistError], None]
    ) -> None:
        self.starter = starter
        self.work: asyncio.Task[None] | None = None  # the start, restart or replacement under way, or the last one
        self._group = group
        self._on_first_start_failed = on_first_start_failed

    def start(self) -> None:
        """Start the ranks of a new group."""
        self.begin(self._first_start())

    def restart(self) -> None:
        """End all ranks and start new ones. Variables are lost; the zygote keeps its imports.

        Raises:
            JupyterDistError: `group_not_ready`, if the group starts or ends, or a node is missing.
        """
        group = self._group
        if group.state in ("starting", "restarting", "ending") or self._is_under_way:
            raise JupyterDistError(
                "group_not_ready",
                say("Group '%1' is %2.", group.spec.name, say(group.state)),
                say("Wait until it is ready or has ended."),
            )
        self._check_nodes()
        self.check_folder()
        # Running and queued cells end; cells that are submitted from now on are for the new ranks.
        group.stop_cells("restarting", JupyterDistError("restarted", say("The group was restarted.")))
        self.begin(self._restart())

    def replace_dead(
        self,
        wanted: ReplaceSpec | None = None,
        source: VariableSource | None = None,
        take_back: TakeBack | None = None,
    ) -> None:
        """Start a new process for every dead rank; the others keep their processes and variables.

        Args:
            wanted: what was asked for; by default new ranks begin empty.
            source: of the variables of new ranks; it is closed in the end.
            take_back: what was done to the others for it, if the ranks cannot be replaced.

        Raises:
            JupyterDistError: `group_not_ready`, if no rank is dead, the others are running cells, or a node is missing.
        """
        self.check_may_replace()
        source = source or NoVariables()
        replacement = Replacement(self._group, self.starter, wanted or ReplaceSpec(), source, take_back)
        replacement.begin()
        self.begin(replacement.run())

    def check_may_replace(self) -> None:
        """Raise JupyterDistError as `replace_dead`."""
        group = self._group
        if group.state != "degraded" or self._is_under_way:
            message = say("Group '%1' has no rank to replace: it is %2.", group.spec.name, say(group.state))
            hint = say("Wait until it is ready.") if self._is_under_way else _INSTEAD_OF_REPLACING.get(group.state, "")
            raise JupyterDistError("group_not_ready", message, hint)
        if group.dispatcher.queue.in_state("running"):
            message = say("The other ranks are running a cell; a new rank can only join when they are idle.")
            raise JupyterDistError("group_not_ready", message, say("Interrupt the cell or wait until it ends."))
        self._check_nodes()
        self.check_folder()

    def check_may_change(self) -> None:
        """Raise JupyterDistError `group_not_ready` if the ranks cannot become others, which are more or fewer."""
        group = self._group
        if group.state not in ("ready", "degraded") or self._is_under_way:
            message = say("Group '%1' is %2.", group.spec.name, say(group.state))
            hint = say("Wait until it is ready.") if self._is_under_way else HOW_TO_BE_READY[group.state]
            raise JupyterDistError("group_not_ready", message, hint)
        if group.dispatcher.queue.in_state("running"):
            message = say("A cell is running; a group can only be resized when its ranks are idle.")
            raise JupyterDistError("group_not_ready", message, say("Interrupt the cell or wait until it ends."))
        if not group.process_group.may_begin:
            raise JupyterDistError("group_not_ready", say("The ranks are joining."), say("Wait until they are ready."))

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Change the ranks in the background: one change at a time, which a restart or the end of the group cancels."""
        self.work = start_task(work, "start or restart", self._failed)

    def cancel(self) -> None:
        """Cancel the start or restart under way: the group ends."""
        if self.work is not None:
            self.work.cancel()

    @property
    def _is_under_way(self) -> bool:
        return self.work is not None and not self.work.done()

    def _check_nodes(self) -> None:
        if self._group.nodes is not None:
            self._group.nodes.check_complete()

    def check_folder(self) -> None:
        """Raise JupyterDistError `bad_directory` if new ranks have no folder; present ranks are not ended."""
        if self._group.nodes is None:  # else each machine looks at its own
            check_folder(self._group.spec.cwd)

    def _failed(self, error: BaseException) -> None:
        """Handle an internal error: the group must not be shown as starting forever."""
        self._group.fail(
            JupyterDistError("internal", say("The agent failed: %1", f"{error!r:.500}"), say("See agent.log."))
        )

    # -- in the background ----------------------------------------------------------------------------

    async def _first_start(self) -> None:
        group = self._group
        try:
            if group.nodes is not None:
                await self.starter.stop()  # ranks are not started here
                self.starter = group.nodes
            await self.starter.prepare(group.preparing())
            await self._start_all()
        except JupyterDistError as err:
            if group.error is None:  # clients that wait for the end of the start read the reason with it
                await group.end_failed_start(err)
            self._on_first_start_failed(err)

    async def _restart(self) -> None:
        group = self._group
        try:
            await self.starter.prepare(group.preparing())
            await end_ranks(group.ranks, "the group was restarted", patient=True)
            await self.starter.settle()
            await sweep(os.getpid(), self.starter.children())
            group.begin_generation()
            await self._start_all()
        except JupyterDistError as err:  # the journal can still be read, and a restart tried again
            await give_up(group.ranks, "the group could not be restarted")
            group.fail(err)

    async def _start_all(self) -> None:
        """Start the process of every rank and wait until all have joined the process group.

        A starter that ends meanwhile makes starts fast; it must not make one fail: then all ranks are started again.

        Raises:
            JupyterDistError: `start_failed`, naming the rank and the cause; nothing is left running then.
        """
        group = self._group
        try:
            try:
                await group.start_ranks(self.starter, group.ranks)
            except JupyterDistError:
                if not self.starter.is_lost:
                    raise
                await end_ranks(group.ranks, "the process that starts ranks has ended", patient=False)
                group.prepare()
                await self.starter.prepare(group.preparing())
                await group.start_ranks(self.starter, group.ranks)
        except JupyterDistError as err:
            await group.end_failed_start(err)
            raise
        group.formed(is_start=True)
