"""The operations: lists and deletions here, saves and restores by the group's agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from jupyter_dist.parts.saves.models import DeletedSave, LastSavesModel, SavePreview, SavesModel, Transfer
from jupyter_dist.parts.saves.transfer import SavesOptions, TransferSpec
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.field import options_of
from jupyter_dist.protocol.models.models import ExecutionModel
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.wire.specs import ExecutionSpec
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.groups.manager import GroupManager, WayToReplace
from jupyter_dist.server.groups.operations import execution_id_of
from jupyter_dist.server.groups.resolve import WantedGroup
from jupyter_dist.server.mirror.mirror import Topic
from jupyter_dist.server.mirror.status import GroupStatus
from jupyter_dist.server.part import ServerPart

from .folders import Saves, merged_preview
from .lastsaves import LastSaves

PREVIEW_SECONDS = 25.0


class SavesServer(ServerPart):
    """Saves and restores groups, lists and deletes saves, and offers the last ones."""

    def __init__(self, manager: GroupManager) -> None:
        super().__init__(manager)
        options = self.options(SavesOptions)
        root_dir = manager.defaults.root_dir
        self._saves = Saves(root_dir, options.saves_folder, options.saves_bytes, options.saves_days)
        self._last = LastSaves(self._saves, self._last_changed)
        self._forget: Callable[[], object] = lambda: None

    def start(self) -> None:
        """Look for the last saves, now and after each save."""
        self._forget = self.manager.listen(self._heard)
        self._last.look()

    def adopted(self) -> None:
        """Look for saves of other servers."""
        self._last.look()

    async def stop(self) -> None:
        """Stop looking."""
        self._forget()
        self._last.stop()

    def start_options(self, request: WantedGroup, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return where a group saves by itself."""
        return {"saves_folder": str(self._saves.folder(None).path)}

    def works_at_end(self, options: Mapping[str, Any]) -> bool:
        """Whether a group saves itself when it is ended."""
        return options_of(SavesOptions, options).save_before_end_seconds > 0

    def group_fields(self, status: GroupStatus) -> Mapping[str, Any]:
        """Return the newest save that the group can restore."""
        python = (status.fields.get("environment") or {}).get("python_version")
        return {"last_save": self._last.fitting(status.name, status.world_size, python)}

    def ways_to_replace(self) -> Mapping[str, WayToReplace]:
        """Return how ranks are replaced with their variables of a save."""
        return {"save": self._saved}

    def _saved(
        self, group: ManagedGroup, save: str | None = None, folder: str | None = None, **options: Any
    ) -> dict[str, Any]:
        """Return the TransferSpec of a save, by default of the newest that the group can restore."""
        if save is None:
            last = self.group_fields(group.status)["last_save"]
            if last is None:
                message = say("There is no save that group '%1' can restore.", group.name)
                raise JupyterDistError("not_found", message, say("Name another save, or replace with state='empty'."))
            save, folder = last["name"], last["folder"]
        return self._saves.to_restore(save, folder, **options).to_dict()

    def _heard(self, topic: Topic) -> None:
        if topic[0] == "execution" and self._has_saved(*topic[1:]):
            self._last.look()

    def _has_saved(self, group_id: str, execution_id: str) -> bool:
        """Whether this execution is a save that exists now."""
        try:
            execution = self.manager.get(group_id).mirror.executions.get(execution_id)
        except JupyterDistError:  # of a group that starts, or is gone
            return False
        transfer = cast("Transfer | None", execution.get("transfer"))
        return execution["state"] == "ok" and transfer is not None and transfer["action"] == "save"

    def _last_changed(self) -> None:
        for group in self.manager.all():
            group.mirror.changed()

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
        wanted = await self._saves.to_save(group.mirror.name, name, folder, **options)
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
        return await _transfer(group, self._saves.to_restore(name, folder, **options), key, owner)

    async def saves(self, group: ManagedGroup, folder: str | None = None) -> SavesModel:
        """Return the saves in a folder, with the reasons why this group cannot restore some of them."""
        return await self._saves.listed(folder, group.mirror.model())

    async def preview_save(self, group: ManagedGroup) -> SavePreview:
        """Return the names that a save would have now."""
        group.mirror.status.check_takes_cells()
        answer, _ = await group.mirror.ask("preview_save", timeout_seconds=PREVIEW_SECONDS)
        return merged_preview(answer["ranks"])

    async def all_saves(self, folder: str | None = None) -> SavesModel:
        """Return the saves in a folder, newest first."""
        return await self._saves.listed(folder)

    async def last_saves(self, group: str | None = None) -> LastSavesModel:
        """Return the newest save of each group, newest first."""
        return {"saves": await self._last.listed(group)}

    async def delete_save(self, save: str, folder: str | None = None) -> DeletedSave:
        """Delete a save."""
        deleted = await self._saves.delete(save, folder)
        self._last.look()
        return deleted


async def _transfer(group: ManagedGroup, wanted: TransferSpec, key: str | None, owner: str | None) -> ExecutionModel:
    mirror, code = group.mirror, f"# {wanted.action} of {wanted.name}"
    mirror.status.check_takes_cells()
    ranks = RankSet(range(mirror.world_size))
    spec = ExecutionSpec(execution_id_of(key), ranks, owner=owner, silent=True, expression="all")
    fields = {**spec.to_dict(), "transfer": wanted.to_dict()}
    await mirror.ask("transfer", code.encode(), take=mirror.on_submitted, execution=fields)
    mirror.executions.set_code(spec.execution_id, code)
    return mirror.executions.get(spec.execution_id)
