"""Where folders of groups may be: the server claims one of the places, and clients look there for groups."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path


def group_places(runtime_dir: str) -> list[Path]:
    """Return the places for the groups of a Jupyter runtime directory, the preferred one first."""
    # Outside of the runtime directory, its name separates the groups of different runtime directories.
    digest = hashlib.sha256(os.fsencode(runtime_dir)).hexdigest()[:8]
    name = f"jupyter_dist-{os.getuid()}-{digest}"
    found = [Path(runtime_dir) / "jupyter_dist"]
    if xdg := os.environ.get("XDG_RUNTIME_DIR"):
        found.append(Path(xdg) / f"jupyter_dist-{digest}")
    return [*found, Path(tempfile.gettempdir()) / name, Path("/tmp") / name]  # noqa: S108 - the server checks it


def may_have_groups(runtime_dir: str) -> bool:
    """Whether there is a directory of any group, which may run or have left its logs. False is certain."""
    # If another user has taken the place, the server takes a place beside it.
    places = {
        beside for place in group_places(runtime_dir) for beside in (place, *place.parent.glob(f"{place.name}-*"))
    }
    return any(True for place in places for _ in place.glob("g-*"))


def temporary_folders() -> list[Path]:
    """Return the folders for temporary files of this machine, the preferred one first; each may be full."""
    found = [Path("/tmp"), Path("/var/tmp"), Path("/dev/shm")]  # noqa: S108 - for private folders in them
    with contextlib.suppress(FileNotFoundError):  # it tries to write there
        found.insert(0, Path(tempfile.gettempdir()))
    return list(dict.fromkeys(found))
