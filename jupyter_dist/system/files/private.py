"""Private folders, and a check whether other users can replace a folder or one above it."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import stat
from functools import lru_cache
from pathlib import Path

LOCAL_GROUPS = Path("/etc/group")


def make_folder(path: Path) -> None:
    """Create a folder for this user alone, and those above it that are missing; do nothing if it exists.

    `mkdir(parents=True)` would create the folders above with the permissions that the umask allows, and users who may
    write there could replace the folder.
    Raises OSError.
    """
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        if path.parent == path:
            raise
        make_folder(path.parent)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)


def open_above(path: Path) -> tuple[Path, str] | None:
    """Return the first folder above a path in which other users can replace the path or its parents, and which users.

    None if there is no such folder.

    Root and the owners of these folders are trusted.
    """
    for above in path.parents:
        with contextlib.suppress(OSError):  # it is created when needed
            found = above.stat()
            if not found.st_mode & stat.S_ISVTX:  # with it, users can rename their own entries only
                if found.st_mode & stat.S_IWOTH:
                    return above, "all users"
                if found.st_mode & stat.S_IWGRP and _has_others(found.st_gid):
                    return above, f"members of the group {_name_of(found.st_gid)}"
    return None


@lru_cache
def _has_others(gid: int) -> bool:
    """Whether another user is a member of a Unix group, or may be: a directory service need not name all members."""
    own = _own_name()
    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return True
    if set(group.gr_mem) - {own, "root"}:
        return True
    if group.gr_name == own:  # the group of this user alone, for which a umask of 002 is made
        return False
    if any(user.pw_gid == gid and user.pw_uid not in (0, os.getuid()) for user in pwd.getpwall()):
        return True
    return not _is_local(gid)


def _is_local(gid: int) -> bool:
    try:
        lines = LOCAL_GROUPS.read_text(errors="replace").splitlines()
    except OSError:
        return False
    return any(line.split(":")[2:3] == [str(gid)] for line in lines)


def _name_of(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""
