"""The work of a save and of a restore in the folder, before ranks begin and when all are prepared. Blocking."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_dist.parts.saves.folder.drafts import Draft, begin, commit, discard
from jupyter_dist.parts.saves.folder.fitness import cannot_restore
from jupyter_dist.parts.saves.folder.layout import SavesFolder, make_save_id
from jupyter_dist.parts.saves.folder.locking import FolderLock, lock_shared
from jupyter_dist.parts.saves.folder.record import (
    MAX_BYTES,
    SaveRecord,
    merged_notes,
    merged_skipped,
    read_index,
    read_record,
)
from jupyter_dist.parts.saves.folder.removal import sweep, used_bytes
from jupyter_dist.parts.saves.transfer import TransferSpec
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.wire.specs import GroupSpec
from jupyter_dist.system.files.owned import OwnFolder
from jupyter_dist.system.memory import available_bytes, shortage
from jupyter_dist.version import __version__

if TYPE_CHECKING:
    from jupyter_dist.parts.saves.models import SaveModel

Reports = Mapping[int, Mapping[str, "str | int"]]


@dataclass
class SaveJob:
    """A save while ranks write it."""

    spec: TransferSpec
    group: GroupSpec
    draft: Draft
    used_bytes: int  # by the folder, before; 0 if there is no limit
    began: float
    execution_count: int = 0

    @property
    def call(self) -> dict[str, Any]:
        """Return the call that ranks carry out."""
        draft = self.draft
        fields = {"folder": str(draft.folder.path), "content": str(draft.content), "token": draft.token}
        return {"do": "save", "changes": "nothing", "seconds": self.spec.timeout_seconds, **fields}

    def keep(self, reports: Reports, total_bytes: int, written_bytes: int) -> None:
        """Make the save exist. Raises JupyterDistError, OSError; there is no such save then, or the last one."""
        model = self._model(reports, total_bytes, written_bytes)
        digests = [str(reports[rank]["digest"]) for rank in range(self.group.world_size)]
        files = [read_index(self.draft.folder, SaveRecord(model, digests), rank) for rank in range(len(digests))]
        model["skipped"] = merged_skipped([file["skipped"] for file in files])
        model["notes"] = merged_notes([file["notes"] for file in files])
        commit(self.draft, SaveRecord(model, digests))

    def drop(self) -> None:
        """Remove the files of the draft, and its chunks."""
        discard(self.draft)
        self.tidy()

    def tidy(self) -> None:
        """Remove the chunks that no save has: after a drop, or after an earlier save was replaced."""
        with contextlib.suppress(OSError):  # the next one tries again
            sweep(self.draft.folder)

    def exceeds(self, written_bytes: int) -> bool:
        """Whether the folder would become larger than it may."""
        return bool(self.spec.max_bytes) and self.used_bytes + written_bytes > self.spec.max_bytes

    def _model(self, reports: Reports, total_bytes: int, written_bytes: int) -> SaveModel:
        first = reports[0]
        return {
            "name": self.spec.name,
            "folder": self.spec.folder,
            "id": self.draft.save_id,
            "group": self.group.name,
            "group_id": self.group.group_id,
            "world_size": self.group.world_size,
            "accelerator": self.group.accelerator,
            "saved_at": time.time(),
            "seconds": round(time.monotonic() - self.began, 3),
            "num_names": max(int(report.get("num_names", 0)) for report in reports.values()),
            "total_bytes": total_bytes,
            "written_bytes": written_bytes,
            "execution_count": self.execution_count,
            "python_version": str(first["python_version"]),
            "torch_version": str(first["torch_version"]),
            "jupyter_dist": __version__,
            "automatic": self.spec.is_automatic,
            "skipped": [],
            "notes": [],
        }


@dataclass
class RestoreJob:
    """A restore while ranks load it."""

    spec: TransferSpec
    record: SaveRecord
    lock: FolderLock
    cells: list[str]  # the code of the cells before the save
    host_bytes: list[int]  # that the variables of each rank take in the memory of its machine
    num_names: int | None = None  # that were read, on the rank with the most

    @property
    def call(self) -> dict[str, Any]:
        """Return the call that ranks carry out."""
        model, spec = self.record.model, self.spec
        content = SavesFolder(Path(spec.folder)).content(spec.name, model["id"])
        versions = {"python": model["python_version"], "torch": model["torch_version"]}
        return {
            "do": "restore",
            "changes": "all",
            "seconds": spec.timeout_seconds,
            "folder": spec.folder,
            "content": str(content),
            "digests": self.record.digests,
            "versions": versions,
        }

    def misfit(self, group: GroupSpec, ranks: Iterable[int]) -> JupyterDistError | None:
        """Return why the group, which may have been resized meanwhile, cannot take the save.

        Args:
            group: the group.
            ranks: the ranks on this machine, whose memory they share.
        """
        problem = cannot_restore(self.record.model, group.world_size, None)
        return problem or shortage(sum(self.host_bytes[rank] for rank in ranks), available_bytes())

    def keep(self, reports: Reports, total_bytes: int, written_bytes: int) -> None:
        """Compare the reports of ranks. Raises JupyterDistError `damaged` if they differ, or if no name was read."""
        by_names: dict[str, list[int]] = {}
        for rank, report in reports.items():
            by_names.setdefault(str(report.get("failed", "")), []).append(rank)
        if len(by_names) > 1:
            names, ranks = next((names, ranks) for names, ranks in by_names.items() if names)
            message = f"Only rank{'s' if len(ranks) > 1 else ''} {RankSet(ranks)} could not read: {names}."
            raise JupyterDistError("damaged", message, say("Use another save."))
        self.num_names = max(int(report["num_names"]) for report in reports.values())
        (names,) = by_names
        if names and not self.num_names:
            message = say("None of its names can be read: %1. The first reason: %2.", names, reports[0]["why"])
            raise JupyterDistError("damaged", message, say("Make what is missing available, or use another save."))

    def drop(self) -> None:
        """Allow chunks to be removed again."""
        self.lock.close()

    def tidy(self) -> None:
        """Allow chunks to be removed again."""
        self.lock.close()

    def exceeds(self, written_bytes: int) -> bool:
        """Return False: nothing is written."""
        return False


Job = SaveJob | RestoreJob


def begin_save(spec: TransferSpec, group: GroupSpec, execution_id: str) -> SaveJob:
    """Create the folders of a save. Raises JupyterDistError."""
    folder = SavesFolder(Path(spec.folder))
    save_id = make_save_id(execution_id)
    draft = begin(folder, spec.name, save_id, group.name, overwrite=spec.overwrite)
    used = used_bytes(folder) if spec.max_bytes else 0
    return SaveJob(spec, group, draft, used, time.monotonic())


def begin_restore(spec: TransferSpec, group: GroupSpec, python_version: str) -> RestoreJob:
    """Read a save, and check that this group can take it.

    Raises:
        JupyterDistError: `not_found`, `not_yours`, `damaged`, `cannot_restore`.
    """
    folder = SavesFolder(Path(spec.folder))
    try:
        lock = lock_shared(folder)
    except OSError as err:
        if isinstance(err, FileNotFoundError):
            read_record(folder, spec.name)  # raises the reason
        message = say("The folder of saves %1 cannot be used: %2.", folder.path, err.strerror or err)
        raise JupyterDistError("bad_directory", message) from err
    try:
        record = read_record(folder, spec.name)
        problem = cannot_restore(record.model, group.world_size, python_version)
        if problem is not None and not (spec.any_version and problem.code == "other_version"):
            raise problem
    except BaseException:
        lock.close()
        raise
    return RestoreJob(spec, record, lock, _cells(folder, record), _host_bytes(folder, record))


def _host_bytes(folder: SavesFolder, record: SaveRecord) -> list[int]:
    """Return how much memory the variables of each rank take; 0 where a rank's files do not have it."""
    found = []
    for rank in range(len(record.digests)):
        size = 0
        with contextlib.suppress(JupyterDistError):  # each rank names what is damaged
            size = read_index(folder, record, rank)["host_bytes"]
        found.append(size)
    return found


def _cells(folder: SavesFolder, record: SaveRecord) -> list[str]:
    """Return the code of the cells before the save, as rank 0 has it; nothing if that cannot be read."""
    with contextlib.suppress(JupyterDistError, OSError, ValueError, KeyError, TypeError):
        place = ("saves", record.model["name"], record.model["id"], read_index(folder, record, 0)["file"])
        found = json.loads(OwnFolder(folder.path).read(*place, max_bytes=MAX_BYTES))["inputs"]
        return [code for code in found if isinstance(code, str)]
    return []
