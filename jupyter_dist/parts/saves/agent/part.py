"""The saves and restores of a group: on request of its server, and by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from jupyter_dist.agent.contact.server_link import Answer, RequestHandler, answer
from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.group.replacing.replacement import BeginReplacing, WayToReplace
from jupyter_dist.agent.part import AgentCore, AgentPart
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.parts.saves.transfer import SavesOptions, TransferSpec, news_of
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.wire.specs import ExecutionSpec, ReplaceSpec
from jupyter_dist.transport.frames import Header

from .beforeend import SaveBeforeEnd
from .jobs import begin_restore
from .periodic import PeriodicSaves
from .replacing import SavedVariables
from .transfers import Transfers, action_of, python_version

PREVIEW_SECONDS = 20.0


class SavesAgent(AgentPart):
    """Saves and restores the group, also every so often, before its allocation ends, and for new ranks alone."""

    def __init__(self, core: AgentCore) -> None:
        super().__init__(core)
        options = self.options(SavesOptions)
        self._transfers = Transfers(core)
        self._periodic = PeriodicSaves(core.group, options, self._transfers)
        self._before_end = SaveBeforeEnd(core.group, options, self._transfers, core.interrupt)

    def changed(self, execution: AgentExecution) -> None:
        """Follow the saves and restores, and note that cells have run."""
        self._transfers.changed(execution)
        if execution.state == "ok" and (action := action_of(execution)):
            self.core.group.end_note("save" if action == "save" else "variables")
        self._periodic.changed(execution)
        self._before_end.changed(execution)

    def received(self, rank: RankProcess, content: dict[str, Any]) -> None:
        """Handle the progress of a rank, or that it is prepared."""
        try:
            news = news_of(content)
        except ValueError:  # of code of the user
            self._transfers.cannot_read(rank)
            return
        self._transfers.rank_sent(rank, news)

    def interrupted(self, ranks: Sequence[RankProcess]) -> Sequence[RankProcess]:
        """Drop the saves and restores of these ranks; prepared ranks get the decision instead."""
        return self._transfers.interrupt(ranks)

    def tick(self, _: float) -> None:
        """Begin the saves that are due."""
        self._periodic.look()
        self._before_end.look()

    def ends(self, at: float | None) -> None:
        """Take the time before which the group is saved."""
        self._before_end.ends(at)

    def nodes_end(self) -> bool:
        """Save the group first, if that is possible."""
        return self._before_end.asked_to_end()

    def group_fields(self) -> Mapping[str, Any]:
        """Return when the group saves by itself; None if it does not."""
        model = self._periodic.model()
        self._before_end.add_to(model)
        return {"self_saving": model if model["every_seconds"] or "ends_at" in model else None}

    def requests(self) -> Mapping[str, RequestHandler]:
        """Return the handlers of `transfer` and `preview_save`."""
        return {"transfer": self._transfer, "preview_save": self._preview}

    def ways_to_replace(self) -> Mapping[str, WayToReplace]:
        """Return the way that gives new ranks their variables of a save."""
        return {"save": self._replace}

    def failed(self, reason: str) -> None:
        """Drop all saves and restores, and let nodes end."""
        try:
            self._transfers.end_all(reason)
        finally:
            self._before_end.give_up()

    async def _transfer(self, header: Header, payload: bytes) -> Answer:
        """Queue a save or a restore of all ranks."""
        self.core.group.check_takes_cells()
        fields = dict(header["execution"])
        wanted = TransferSpec.from_dict(fields.pop("transfer") or {})
        execution = await self._transfers.submit(ExecutionSpec.from_dict(fields), payload, wanted)
        return answer(execution=execution.model())

    async def _preview(self, _header: Header, _: bytes) -> Answer:
        """Return the names that each rank would save now."""
        ranks = self.core.group.ranks
        return answer(ranks=await asyncio.gather(*(self._preview_of(rank.rank) for rank in ranks)))

    async def _preview_of(self, number: int) -> dict[str, Any]:
        rank = self.core.begun_rank(number)
        if rank.execution_id is not None:
            message = say("Rank %1 runs a cell.", number)
            raise JupyterDistError("group_not_ready", message, say("Ask when it has ended."))
        return (await rank.request("preview_save", PREVIEW_SECONDS)).fields()

    async def _replace(self, wanted: ReplaceSpec, begin: BeginReplacing) -> None:
        """Read the save, before anything changes, and replace dead ranks."""
        group, spec = self.core.group, TransferSpec.from_dict(wanted.restore or {})
        job = await asyncio.to_thread(begin_restore, spec, group.spec, python_version(group.living()))
        source = SavedVariables(job)
        try:
            begin(source, None)
        except JupyterDistError:
            source.close()
            raise
