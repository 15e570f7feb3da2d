"""The other folders of saves that a server's groups were saved in: their newest saves are offered, too. Blocking."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from jupyter_dist.parts.saves.folder.layout import SavesFolder
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.system.files.jsonfile import read_json
from jupyter_dist.system.files.owned import check_folder, check_own
from jupyter_dist.system.files.private import make_folder

PLACES = "places.json"  # in the server's own folder
MAX_PLACES = 20


def other_folders(own: SavesFolder) -> list[SavesFolder]:
    """Return the other folders, the newest last; none if that cannot be read."""
    path = own.path / PLACES
    with contextlib.suppress(OSError, ValueError, TypeError, JupyterDistError):
        check_folder(own.path)
        check_own(path)
        places = [Path(place) for place in read_json(path) if isinstance(place, str)]
        return [SavesFolder(place) for place in places if place.is_absolute()][-MAX_PLACES:]
    return []


def remember_folder(own: SavesFolder, other: SavesFolder) -> None:
    """Add another folder. A folder that cannot be added is only not offered, so errors are ignored."""
    known = [place.path for place in other_folders(own)]
    if known[-1:] == [other.path]:
        return
    places = [*(place for place in known if place != other.path), other.path][-MAX_PLACES:]
    aside = own.path / f".{PLACES}.{os.getpid()}"
    with contextlib.suppress(OSError):
        make_folder(own.path)
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w") as file:
            json.dump([str(place) for place in places], file)
        aside.replace(own.path / PLACES)
