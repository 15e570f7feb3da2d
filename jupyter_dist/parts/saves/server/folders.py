"""The folders of saves, as a server knows them: its own, the limits, lists and deletions."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_core.paths import jupyter_data_dir

from jupyter_dist.parts.saves.folder.drafts import free_name
from jupyter_dist.parts.saves.folder.fitness import cannot_restore
from jupyter_dist.parts.saves.folder.layout import SavesFolder, check_name
from jupyter_dist.parts.saves.folder.record import merged_names, merged_notes, merged_skipped, records
from jupyter_dist.parts.saves.folder.removal import delete, delete_older
from jupyter_dist.parts.saves.models import DeletedSave, SavePreview, SavesModel
from jupyter_dist.parts.saves.transfer import DEFAULT_TRANSFER_SECONDS, TransferSpec
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.models.sentences import say, words_of
from jupyter_dist.system.files.owned import check_folder

from .places import remember_folder

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Saves:
    """The settings for saves, and what needs no group."""

    root_dir: str
    default_folder: str
    max_bytes: int
    max_days: float

    def folder(self, wanted: str | None) -> SavesFolder:
        """Return the folder that a request names, or the default. Raises JupyterDistError `bad_directory`."""
        default = self.default_folder or str(Path(jupyter_data_dir()) / "jupyter_dist" / "saves")
        try:
            return SavesFolder((Path(self.root_dir) / Path(wanted or default).expanduser()).resolve())
        except (OSError, ValueError, RuntimeError) as err:
            message = say("%1 is no folder: %2.", f"{(wanted or default)[:200]!r}", err)
            raise JupyterDistError("bad_directory", message, say("Choose another folder.")) from err

    async def listed(self, wanted: str | None, group: models.GroupModel | None = None) -> SavesModel:
        """Return the saves of a folder; if a group is given, with the reasons why it cannot restore them."""
        folder = self.folder(wanted)
        return await asyncio.to_thread(_listed, folder, group)

    async def delete(self, name: str, wanted: str | None) -> DeletedSave:
        """Delete a save. Raises JupyterDistError `not_found`, `not_yours`, `bad_directory`."""
        folder = self.folder(wanted)
        return {"name": name, "freed_bytes": await asyncio.to_thread(delete, folder, name)}

    async def to_save(self, group: str, name: str | None, folder: str | None, **options: Any) -> TransferSpec:
        """Return the TransferSpec of a save, after deleting saves that are too old."""
        place, own = self.folder(folder), self.folder(None)
        if place != own:
            await asyncio.to_thread(remember_folder, own, place)
        elif self.max_days:
            await asyncio.to_thread(_delete_older, place, self.max_days)
        if name is None:
            name = await asyncio.to_thread(free_name, place, check_name(_default_name(group)))
        options.setdefault("timeout_seconds", DEFAULT_TRANSFER_SECONDS)
        return TransferSpec("save", str(place.path), check_name(name), max_bytes=self.max_bytes, **options)

    def to_restore(self, name: str, folder: str | None, **options: Any) -> TransferSpec:
        """Return the TransferSpec of a restore."""
        options.setdefault("timeout_seconds", DEFAULT_TRANSFER_SECONDS)
        return TransferSpec("restore", str(self.folder(folder).path), check_name(name), **options)


def merged_preview(ranks: Sequence[dict[str, Any]]) -> SavePreview:
    """Return the preview of a save from the answers of ranks, equal entries once."""
    return {
        "names": merged_names([[{"name": name} for name in found["names"]] for found in ranks]),
        "skipped": merged_skipped([found["skipped"] for found in ranks]),
        "notes": merged_notes([found["notes"] for found in ranks]),
        "total_bytes": sum(int(found["total_bytes"]) for found in ranks),
    }


def _listed(folder: SavesFolder, group: models.GroupModel | None) -> SavesModel:
    if folder.path.exists():
        check_folder(folder.path)
    found, damaged = records(folder)
    saves = [record.model for record in found]
    if group is not None:
        python = group["environment"].get("python_version")
        for save in saves:
            problem = cannot_restore(save, group["world_size"], python)
            save["problem"] = None if problem is None else problem.message
            save["problem_words"] = words_of(save["problem"])
    return {"folder": str(folder.path), "saves": saves, "damaged": [error.message for error in damaged]}


def _delete_older(folder: SavesFolder, days: float) -> None:
    try:
        delete_older(folder, days)
    except OSError as err:
        message = say("Old saves in %1 cannot be deleted: %2.", folder.path, err.strerror or err)
        raise JupyterDistError("bad_directory", message) from err


def _default_name(group: str) -> str:
    return re.sub("[^A-Za-z0-9_.-]", "-", group) + time.strftime("-%Y%m%d-%H%M%S")
