"""Whether files are this user's alone: unpickling runs code, so files that others could have written are not read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.system.files.owners import open_above


def check_own(path: Path) -> os.stat_result:
    """Refuse a file or folder that another user owns or can write.

    Raises:
        JupyterDistError: `not_yours`.
        OSError: it cannot be read.
    """
    found = path.lstat()
    reason = None
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        reason = "is neither a file nor a folder"
    elif found.st_uid != os.getuid():
        reason = f"belongs to the user with the id {found.st_uid}"
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        reason = f"can be written by others (mode {stat.S_IMODE(found.st_mode):04o})"
    if reason is not None:
        raise _not_yours(f"{path} {reason}.")
    return found


def check_folder(path: Path) -> None:
    """Refuse a folder that other users own, can write or can replace. Raises like `check_own`."""
    check_own(path)
    if (above := open_above(path / "any")) is not None:
        raise _not_yours(f"{above.place}, in which {path} is, can be written by {above.who}.")


def _not_yours(message: str) -> JupyterDistError:
    hint = "A restore runs code from the files. Use a folder that only you can write, with the mode 0700."
    return JupyterDistError("not_yours", message, hint)
