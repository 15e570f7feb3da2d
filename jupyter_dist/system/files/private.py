"""Private folders, their check, and a check whether other users can replace a folder or one above it."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import secrets
import stat
from functools import lru_cache
from pathlib import Path

from jupyter_dist.protocol.errors import JupyterDistError

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


def make_private(directory: Path) -> None:
    """Create a directory that only this user can enter, or check an existing one.

    Raises:
        JupyterDistError: `bad_directory`, if it belongs to another user, is a link, or is open to others.
    """
    with contextlib.suppress(FileExistsError):
        make_folder(directory.parent)
        directory.mkdir(mode=0o700)
        directory.chmod(0o700)  # regardless of the umask
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        message = f"{directory} is not a directory owned by you."
        raise JupyterDistError("bad_directory", message, "Remove it, or set JUPYTER_RUNTIME_DIR.")
    if stat.S_IMODE(found.st_mode) & 0o077:
        message = f"{directory} is open to other users."
        raise JupyterDistError("bad_directory", message, f"Run 'chmod 700 {directory}'.")


def claim(candidate: Path) -> Path:
    """Create this private directory, or one beside it with a random name if another user has taken it; return which.

    Raises:
        JupyterDistError, OSError: neither can be created.
    """
    try:
        make_private(candidate)
    except JupyterDistError:
        found = candidate.lstat()
        if candidate.name == "jupyter_dist" or (stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()):
            raise  # our directory, but open to others: the hint has the remedy
        return _claim_beside(candidate)
    return candidate


def _claim_beside(candidate: Path) -> Path:
    prefix = candidate.name + "-"
    for path in sorted(candidate.parent.glob(prefix + "[0-9a-f]" * 8)):  # created by an earlier server
        with contextlib.suppress(OSError, JupyterDistError):
            make_private(path)
            return path
    # Short, because the limit on the socket's path was checked without it.
    path = candidate.parent / (prefix + secrets.token_hex(4))
    make_private(path)
    return path


def is_private(directory: Path) -> bool:
    """Whether the path is a directory of this user that others cannot enter; another user may have replaced it."""
    try:
        found = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077


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
