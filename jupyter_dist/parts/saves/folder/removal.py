"""Removes saves, and what no save needs any more."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.system.files.valuefiles import CHUNK_NAME

from .layout import CONTENT_FILE, SAVE_ID, SAVE_NAME, SavesFolder
from .locking import lock_alone
from .record import SaveRecord, read_index, read_record, records

DAY_SECONDS = 86400.0


def delete(folder: SavesFolder, name: str) -> int | None:
    """Remove a save, and the chunks that no other save has; return the bytes that are free again.

    None: a save or a restore runs in this folder, so that the chunks are left to the next removal.

    Raises:
        JupyterDistError: `not_found`, `not_yours`, `bad_directory`.
    """
    try:
        read_record(folder, name)
    except JupyterDistError as err:
        if err.code != "damaged":
            raise
    try:
        folder.record(name).unlink(missing_ok=True)  # from now on, there is no such save
        return sweep(folder)
    except OSError as err:
        message = f"The save '{name}' cannot be removed: {err.strerror or err}."
        raise JupyterDistError("bad_directory", message) from err


def delete_older(folder: SavesFolder, days: float) -> list[str]:
    """Remove the saves that are older; return their names. Raises OSError."""
    found, _ = records(folder)
    old = [one.model["name"] for one in found if time.time() - one.model["saved_at"] > days * DAY_SECONDS]
    for name in old:
        folder.record(name).unlink(missing_ok=True)
    if old:
        sweep(folder)
    return old


def delete_automatic(folder: SavesFolder, group_id: str, kept: int) -> list[str]:
    """Remove the saves that a group has made by itself, except for the newest; return their names. Raises OSError."""
    own = [one.model for one in records(folder)[0] if one.model["group_id"] == group_id]
    old = [model["name"] for model in own if model.get("automatic")][kept:]
    for name in old:
        folder.record(name).unlink(missing_ok=True)
    if old:
        sweep(folder)
    return old


def sweep(folder: SavesFolder) -> int | None:
    """Remove files that belong to no save; return how many bytes they had, or None while a save runs. Raises OSError.

    If any save cannot be read, no chunks are removed: they may be its own.
    """
    if not folder.saves.is_dir() or (lock := lock_alone(folder)) is None:
        return None
    try:
        freed = sum(map(_remove_remains, list(folder.saves.iterdir())))
        found, damaged = records(folder)
        if damaged:
            return freed
        try:
            needed = {chunk for record in found for chunk in _chunks_of(folder, record)}
        except JupyterDistError:  # a rank's file is damaged: which chunks it needs is not known
            return freed
        return freed + _remove_chunks(folder, needed)
    finally:
        lock.close()


def used_bytes(folder: SavesFolder) -> int:
    """Return the size of all files of the folder."""
    return sum(found.st_size for _, found in _files(folder.path))


def _remove_remains(path: Path) -> int:
    """Remove the remains of an unfinished save or deletion from the folder of a name; what is not ours stays."""
    if path.is_symlink() or not path.is_dir() or not re.fullmatch(SAVE_NAME, path.name):
        return 0
    needed: set[str] = set()
    if (path / "save.json").exists():
        try:
            needed = {"save.json", read_record(SavesFolder(path.parent.parent), path.name).model["id"]}
        except JupyterDistError:
            return 0
    freed = sum(_removed(entry) for entry in list(path.iterdir()) if entry.name not in needed)
    if not needed:
        with contextlib.suppress(OSError):
            path.rmdir()
    return freed


def _removed(entry: Path) -> int:
    """Remove a file or the files of ranks, if they are a save's; return their size."""
    if entry.is_symlink():
        return 0
    if entry.is_dir():
        return remove_content(entry)
    if entry.name != "save.json" and not re.fullmatch(rf"\.save\.json\.{SAVE_ID}", entry.name):
        return 0
    freed = entry.lstat().st_size
    entry.unlink()
    return freed


def remove_content(path: Path) -> int:
    """Remove a folder with the files of ranks; return their size. Links are not followed, and what is not ours stays.

    Raises OSError.
    """
    freed = 0
    if path.is_symlink() or not re.fullmatch(SAVE_ID, path.name):
        return freed
    for file in list(path.iterdir()):
        if re.fullmatch(CONTENT_FILE, file.name) and (file.is_file() or file.is_symlink()):
            freed += file.lstat().st_size
            file.unlink()
    with contextlib.suppress(OSError):
        path.rmdir()
    return freed


def _chunks_of(folder: SavesFolder, record: SaveRecord) -> Iterator[str]:
    for rank in range(record.model["world_size"]):
        yield from read_index(folder, record, rank)["chunks"]


def _remove_chunks(folder: SavesFolder, needed: set[str]) -> int:
    freed = 0
    ours = re.compile(rf"({CHUNK_NAME})(\.[0-9a-f]{{16}}\.partial)?")
    for path, found in list(_files(folder.chunks)) if not folder.chunks.is_symlink() else ():
        if path.name not in needed and ours.fullmatch(path.name):
            path.unlink()
            freed += found.st_size
    return freed


def _files(top: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for place, _, names in os.walk(top):
        for name in names:
            path = Path(place, name)
            with contextlib.suppress(FileNotFoundError):
                found = path.lstat()
                if stat.S_ISREG(found.st_mode):
                    yield path, found
