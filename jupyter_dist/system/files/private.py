"""Private folders, and their check."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from jupyter_dist.protocol.errors import JupyterDistError


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


def write_private(path: Path, text: str) -> None:
    """Write or replace a file that only this user can read, whole or not at all. Raises OSError."""
    unready = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    fd = os.open(unready, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(fd, "w") as file:
            file.write(text)
        unready.replace(path)
    except BaseException:
        unready.unlink(missing_ok=True)
        raise
