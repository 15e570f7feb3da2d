"""The save.json of a save: written by the agent, read by servers and agents."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.system.files.owned import OwnFolder, check_folder

from .checked import checked_index, checked_save, is_list_of, is_text
from .layout import SavesFolder, check_name, index_file

if TYPE_CHECKING:
    from jupyter_dist.parts.saves.models import SaveModel

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jupyter_dist.protocol.ranks import RankSet

if TYPE_CHECKING:
    from jupyter_dist.parts.saves.models import SavedName, SaveNote, Skipped

FORMAT = 1
MAX_BYTES = 64 << 20


@dataclass(frozen=True)
class SaveRecord:
    """The content of a save.json."""

    model: SaveModel
    digests: list[str]  # of each rank's index
    checksum: str = ""  # of the save.json itself: on all machines alike

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        return json.dumps({"format": FORMAT, "save": self.model, "digests": self.digests}, indent=1).encode()


def digest_of(content: bytes) -> str:
    """Return the checksum of a small file."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def read_record(folder: SavesFolder, name: str) -> SaveRecord:
    """Return the record of a save.

    Raises:
        JupyterDistError: `not_found`; `not_yours`; `damaged`, also if a later version wrote it.
    """
    path = folder.record(check_name(name))
    try:
        check_folder(folder.path)
        content = OwnFolder(folder.path).read("saves", name, path.name, max_bytes=MAX_BYTES)
        return _parsed(folder, name, content)
    except FileNotFoundError:
        raise JupyterDistError(
            "not_found", say("There is no save '%1' in %2.", name, folder.path), _hint(folder)
        ) from None
    except OSError as err:
        raise JupyterDistError("damaged", say("The save '%1' cannot be read: %2.", name, err.strerror or err)) from err
    except (ValueError, RecursionError) as err:
        message = say("The save '%1' cannot be read: %2 is damaged (%3).", name, path, f"{err!s:.100}")
        raise JupyterDistError("damaged", message, say("Delete it, and use another save.")) from err


def _parsed(folder: SavesFolder, name: str, content: bytes) -> SaveRecord:
    fields = json.loads(content)
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        written = fields.get("format") if isinstance(fields, dict) else None
        message = f"it has format {written!r:.20}, and this version of jupyter_dist reads format {FORMAT}"
        raise ValueError(message)
    model, digests = checked_save(fields.get("save")), fields.get("digests")
    if not is_list_of(digests, is_text) or len(digests) != model["world_size"]:
        message = "its digests are not those of its ranks"
        raise ValueError(message)
    # The folder may have been moved since.
    model = {**model, "name": name, "folder": str(folder.path)}
    return SaveRecord(cast("SaveModel", model), digests, digest_of(content))


def read_index(folder: SavesFolder, record: SaveRecord, rank: int) -> dict[str, Any]:
    """Return the index of a rank.

    Raises:
        JupyterDistError: `damaged`, `not_yours`.
    """
    name, file = record.model["name"], index_file(rank)
    try:
        content = OwnFolder(folder.path).read("saves", name, record.model["id"], file, max_bytes=MAX_BYTES)
        return parsed_index(content, record.digests[rank], rank)
    except (OSError, ValueError, RecursionError) as err:
        reason = (err.strerror if isinstance(err, OSError) else None) or str(err)
        message = say("The save '%1' is damaged: %2: %3.", name, file, f"{reason:.100}")
        raise JupyterDistError("damaged", message, say("Delete it, and use another save.")) from err


def parsed_index(content: bytes, digest: str, rank: int) -> dict[str, Any]:
    """Return the index of a rank from the content of its file. Raises ValueError, RecursionError."""
    if digest_of(content) != digest:
        message = "its checksum differs"
        raise ValueError(message)
    return checked_index(json.loads(content), rank)


def sync_folder(path: Path) -> None:
    """Write the entries of a folder to disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def records(folder: SavesFolder) -> tuple[list[SaveRecord], list[JupyterDistError]]:
    """Return the saves of a folder, newest first, and an error for each that cannot be read."""
    found: list[SaveRecord] = []
    damaged: list[JupyterDistError] = []
    for name in names(folder):
        try:
            found.append(read_record(folder, name))
        except JupyterDistError as err:
            if err.code != "not_found":  # removed meanwhile
                damaged.append(err)
    return sorted(found, key=lambda record: -record.model["saved_at"]), damaged


def names(folder: SavesFolder) -> list[str]:
    """Return the names of the saves, sorted."""
    try:
        return sorted(path.parent.name for path in folder.saves.glob("*/save.json"))
    except OSError:
        return []


def _hint(folder: SavesFolder) -> str:
    known = names(folder)
    return say("Saves there: %1.", ", ".join(known[:20])) if known else say("There are no saves in this folder.")


MAX_ENTRIES = 2000

OfRanks = Sequence[Sequence[Mapping[str, Any]]]  # a list of each rank, in the order of ranks


def merged_skipped(of_ranks: OfRanks) -> list[Skipped]:
    """Return the names that could not be saved."""
    return [
        {"name": name, "ranks": ranks, "reason": reason, "execution_count": count, "code": code}
        for (name, reason, count, code), ranks in _merged(of_ranks, ("name", "reason", "execution_count", "code"))
    ]


def merged_notes(of_ranks: OfRanks) -> list[SaveNote]:
    """Return the parts of other names that could not be saved."""
    return [
        {"name": name, "ranks": ranks, "reason": reason}
        for (name, reason), ranks in _merged(of_ranks, ("name", "reason"))
    ]


def merged_names(of_ranks: OfRanks) -> list[SavedName]:
    """Return the names that ranks would save."""
    return [{"name": name, "ranks": ranks} for (name,), ranks in _merged(of_ranks, ("name",))]


def _merged(of_ranks: OfRanks, fields: Sequence[str]) -> list[tuple[tuple[Any, ...], str]]:
    found: dict[tuple[Any, ...], list[int]] = {}
    for rank, entries in enumerate(of_ranks):
        for entry in entries:
            found.setdefault(tuple(entry.get(name) for name in fields), []).append(rank)
    return [(key, str(RankSet(ranks))) for key, ranks in list(found.items())[:MAX_ENTRIES]]
