"""Removes saves, and what no save needs any more."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from jupyter_dist.protocol.errors import JupyterDistError

from .layout import SavesFolder
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
    """Remove the remains of an unfinished save or deletion from the folder of a name."""
    needed: set[str] = set()
    if (path / "save.json").exists():
        try:
            needed = {"save.json", read_record(SavesFolder(path.parent.parent), path.name).model["id"]}
        except JupyterDistError:
            return 0
    freed = 0
    for entry in list(path.iterdir()) if path.is_dir() else []:
        if entry.name not in needed:
            freed += sum(found.st_size for _, found in _files(entry)) if entry.is_dir() else entry.lstat().st_size
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    if not needed:
        with contextlib.suppress(OSError):
            path.rmdir()
    return freed


def _chunks_of(folder: SavesFolder, record: SaveRecord) -> Iterator[str]:
    for rank in range(record.model["world_size"]):
        yield from read_index(folder, record, rank)["chunks"]


def _remove_chunks(folder: SavesFolder, needed: set[str]) -> int:
    freed = 0
    for path, found in list(_files(folder.chunks)):
        if path.name not in needed:
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
