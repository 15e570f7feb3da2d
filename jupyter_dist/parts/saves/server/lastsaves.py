"""The newest save of each group, so that a group that has ended can be started as it was."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jupyter_dist.parts.saves.folder.fitness import cannot_restore
from jupyter_dist.parts.saves.folder.layout import SavesFolder
from jupyter_dist.parts.saves.folder.record import SaveRecord, records
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.transport.tasks import start_task

from .folders import Saves
from .places import other_folders

if TYPE_CHECKING:
    from jupyter_dist.parts.saves.models import LastSave, SaveModel

log = logging.getLogger(__name__)


class LastSaves:
    """The newest saves in the server's folder, and in other folders in which its groups were saved."""

    def __init__(self, saves: Saves, on_change: Callable[[], None]) -> None:
        self._saves = saves
        self._on_change = on_change
        self._newest: list[SaveModel] = []
        self._reading: asyncio.Task[None] | None = None
        self._is_stale = False

    def look(self) -> None:
        """Read the folders in the background, and again if they are being read now."""
        if self._reading is not None and not self._reading.done():
            self._is_stale = True
        else:
            self._reading = start_task(self._read_in_background(), "read the newest saves", self._failed)

    def stop(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()

    async def listed(self, group: str | None = None) -> list[LastSave]:
        """Return the saves as they are now, newest first; of one group's name, if one is given."""
        await self._read()
        return [last_save(save) for save in self._newest if group in (None, save["group"])]

    def fitting(self, group: str, world_size: int, python_version: str | None) -> LastSave | None:
        """Return the newest save of a group's name that it can restore."""
        for save in self._newest:
            if save["group"] == group and cannot_restore(save, world_size, python_version) is None:
                return last_save(save)
        return None

    async def _read_in_background(self) -> None:
        self._is_stale = True
        while self._is_stale:
            self._is_stale = False
            await self._read()

    def _failed(self, error: BaseException) -> None:
        log.error("jupyter_dist: the saves cannot be read", exc_info=error)

    async def _read(self) -> None:
        own = self._saves.folder(None)
        before, self._newest = self._newest, await asyncio.to_thread(_newest_saves, own)
        if before != self._newest:
            self._on_change()


def last_save(save: SaveModel) -> LastSave:
    """Return a save as it is offered."""
    return {
        "name": save["name"],
        "folder": save["folder"],
        "group": save["group"],
        "saved_at": save["saved_at"],
        "world_size": save["world_size"],
        "python_version": save["python_version"],
        "total_bytes": save["total_bytes"],
    }


def newest_of_each(saves: Sequence[SaveModel]) -> list[SaveModel]:
    """Return the newest save for each group, number of ranks and version of Python, newest first. Pure."""
    found: dict[tuple[str, int, str], SaveModel] = {}
    for save in sorted(saves, key=lambda save: -save["saved_at"]):
        found.setdefault((save["group"], save["world_size"], save["python_version"]), save)
    return list(found.values())


def _newest_saves(own: SavesFolder) -> list[SaveModel]:
    found = [record.model for folder in (own, *other_folders(own)) for record in _readable(folder)]
    return newest_of_each(found)


def _readable(folder: SavesFolder) -> list[SaveRecord]:
    try:
        return records(folder)[0]
    except (OSError, JupyterDistError):  # such as a network drive that is not mounted
        return []
