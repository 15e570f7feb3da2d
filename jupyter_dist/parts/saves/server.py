"""The operations: lists and deletions here, saves and restores by the group's agent."""

from __future__ import annotations

from typing import Any

from jupyter_dist.protocol.models.models import ExecutionModel
from jupyter_dist.protocol.models.saves import DeletedSave, LastSavesModel, SavePreview, SavesModel
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.wire.specs import ExecutionSpec, TransferSpec
from jupyter_dist.server.analysis.saves import merged_preview
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.groups.operations import execution_id_of
from jupyter_dist.server.part import ServerPart

PREVIEW_SECONDS = 25.0


class SavesServer(ServerPart):
    """Saves and restores groups, and lists and deletes saves."""

    async def save(
        self,
        group: ManagedGroup,
        name: str | None = None,
        folder: str | None = None,
        key: str | None = None,
        owner: str | None = None,
        **options: Any,
    ) -> ExecutionModel:
        """Save the variables of all ranks; return the execution that does it."""
        wanted = await self.manager.saves.to_save(group.mirror.name, name, folder, **options)
        return await _transfer(group, wanted, key, owner)

    async def restore(
        self,
        group: ManagedGroup,
        name: str,
        folder: str | None = None,
        key: str | None = None,
        owner: str | None = None,
        **options: Any,
    ) -> ExecutionModel:
        """Give all ranks the variables of a save; return the execution that does it."""
        return await _transfer(group, self.manager.saves.to_restore(name, folder, **options), key, owner)

    async def saves(self, group: ManagedGroup, folder: str | None = None) -> SavesModel:
        """Return the saves in a folder, with the reasons why this group cannot restore some of them."""
        return await self.manager.saves.listed(folder, group.mirror.model())

    async def preview_save(self, group: ManagedGroup) -> SavePreview:
        """Return the names that a save would have now."""
        group.mirror.status.check_takes_cells()
        answer, _ = await group.mirror.ask("preview_save", timeout_seconds=PREVIEW_SECONDS)
        return merged_preview(answer["ranks"])

    async def all_saves(self, folder: str | None = None) -> SavesModel:
        """Return the saves in a folder, newest first."""
        return await self.manager.saves.listed(folder)

    async def last_saves(self, group: str | None = None) -> LastSavesModel:
        """Return the newest save of each group, newest first."""
        return {"saves": await self.manager.last_saves.listed(group)}

    async def delete_save(self, save: str, folder: str | None = None) -> DeletedSave:
        """Delete a save."""
        deleted = await self.manager.saves.delete(save, folder)
        self.manager.last_saves.look()
        return deleted


async def _transfer(group: ManagedGroup, wanted: TransferSpec, key: str | None, owner: str | None) -> ExecutionModel:
    mirror, code = group.mirror, f"# {wanted.action} of {wanted.name}"
    mirror.status.check_takes_cells()
    ranks = RankSet(range(mirror.world_size))
    spec = ExecutionSpec(
        execution_id_of(key), ranks, owner=owner, silent=True, transfer=wanted.to_dict(), expression="all"
    )
    await mirror.ask("transfer", code.encode(), take=mirror.on_submitted, execution=spec.to_dict())
    mirror.executions.set_code(spec.execution_id, code)
    return mirror.executions.get(spec.execution_id)
