"""A save while it is written: begun, then committed at once, or discarded."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.system.files.owned import check_folder, check_own
from jupyter_dist.system.files.private import make_folder

from .layout import TOKEN, SavesFolder
from .locking import FolderLock, lock_shared
from .record import SaveRecord, read_record, sync_folder
from .removal import remove_content


@dataclass
class Draft:
    """A save that is not yet there: its files are written into `content`, which no save.json names."""

    folder: SavesFolder
    name: str
    save_id: str
    token: str
    lock: FolderLock

    @property
    def content(self) -> Path:
        """Return the folder for the files of ranks."""
        return self.folder.content(self.name, self.save_id)


def free_name(folder: SavesFolder, wanted: str) -> str:
    """Return the name of a new save, with a number if there is such a save, and create its folder: no other gets it.

    If that fails, the wanted name is returned: `begin` raises the reason.
    """
    with contextlib.suppress(OSError, JupyterDistError):
        make_folder(folder.path)
        check_folder(folder.path)
        make_folder(folder.saves)
        for number in itertools.count(1):
            name = wanted if number == 1 else f"{wanted}-{number}"
            with contextlib.suppress(FileExistsError):
                (folder.saves / name).mkdir(mode=0o700)
                return name
    return wanted


def begin(folder: SavesFolder, name: str, save_id: str, group: str, *, overwrite: bool) -> Draft:
    """Create the folders of a new save.

    Raises:
        JupyterDistError: `name_taken`, if another group has a save of this name; `bad_directory`, `not_yours`.
    """
    try:
        return _begin(folder, name, save_id, group, overwrite=overwrite)
    except OSError as err:
        message = say("Nothing can be saved in %1: %2.", folder.path, err.strerror or err)
        raise JupyterDistError(
            "bad_directory", message, say("Free some space there, or choose another folder.")
        ) from err


def _begin(folder: SavesFolder, name: str, save_id: str, group: str, *, overwrite: bool) -> Draft:
    make_folder(folder.path)
    check_folder(folder.path)
    for path in (folder.chunks, folder.saves, folder.record(name).parent):
        make_folder(path)
        check_own(path)
    lock = lock_shared(folder)
    try:
        _check_free(folder, name, group, overwrite=overwrite)
        draft = Draft(folder, name, save_id, secrets.token_hex(16), lock)
        make_folder(draft.content)
        fd = os.open(draft.content / TOKEN, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(draft.token)
    except BaseException:
        lock.close()
        raise
    return draft


def _check_free(folder: SavesFolder, name: str, group: str, *, overwrite: bool) -> None:
    """Refuse to replace a save of another group."""
    if overwrite or not folder.record(name).exists():
        return
    try:
        owner = read_record(folder, name).model["group"]
    except JupyterDistError as err:
        if err.code != "damaged":
            raise
        return  # there is nothing to lose
    if owner != group:
        message = say("The save '%1' is of group '%2'.", name, owner)
        raise JupyterDistError("name_taken", message, say("Choose another name, or `overwrite` it."))


def commit(draft: Draft, record: SaveRecord) -> None:
    """Make the save exist, in place of the last one with its name; the caller has checked the files of ranks.

    Raises OSError; the last save with this name is as it was then.
    """
    (draft.content / TOKEN).unlink(missing_ok=True)
    sync_folder(draft.content)
    place = draft.folder.record(draft.name)
    former = _former(draft)
    aside = place.with_name(f".save.json.{draft.save_id}")
    try:
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(record.to_bytes())
            file.flush()
            os.fsync(file.fileno())
        aside.replace(place)
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    # It exists. What follows is cleaning up; after an exception the caller would remove the save.
    with contextlib.suppress(Exception):
        sync_folder(place.parent)
        sync_folder(draft.folder.saves)
    if former is not None:
        with contextlib.suppress(Exception):
            remove_content(former)
    draft.lock.close()


def _former(draft: Draft) -> Path | None:
    """Return the folder of the save that is about to be replaced."""
    with contextlib.suppress(JupyterDistError):
        return draft.folder.content(draft.name, read_record(draft.folder, draft.name).model["id"])
    return None


def discard(draft: Draft) -> None:
    """Remove the files of the draft, except for chunks, which the next removal finds. Never raises."""
    with contextlib.suppress(Exception):
        remove_content(draft.content)
        draft.content.parent.rmdir()  # if there is no save with this name
    draft.lock.close()
