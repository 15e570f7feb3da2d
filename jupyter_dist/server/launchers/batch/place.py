"""The folder of a job on a file system that its nodes see, which no other user may write."""

from __future__ import annotations

import contextlib
from pathlib import Path

from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.server.launchers.allocation import Wanted, launcher_failed
from jupyter_dist.system.files.owners import open_above

OWN_FOLDER = ".jupyter_dist"


def job_folder(wanted: Wanted, shared_dir: str) -> Path:
    """Return the folder of a job: in `shared_dir`, else in the group's folder if that is in the user's home."""
    if shared_dir:
        return Path(shared_dir).expanduser() / wanted.group_id
    home = Path.home()
    is_in_home = wanted.directory.is_relative_to(home)
    return wanted.directory / "nodes" if is_in_home else home / OWN_FOLDER / wanted.group_id


def check_place(folder: Path, setting: str) -> None:
    """Raise JupyterDistError `launcher_failed` if other users could replace the script of the job.

    The job waits, possibly for hours, and then runs the script as this user. `setting` names another folder.
    """
    own = Path.home() / OWN_FOLDER
    if folder.parent == own and own.is_dir() and not own.is_symlink():
        with contextlib.suppress(OSError):  # of another user: reported below
            own.chmod(0o700)  # it may have been created as open as the umask allows
    if (found := open_above(folder / "any")) is not None:  # the folder itself, too, if it is there already
        message = say("What is in %1 can be replaced by %2, who could run programs as you on the nodes.", *found[:2])
        way = "" if found.own_it else say("Run 'chmod go-w %1' or 'chmod +t %1'. Or:", found.place)
        other = say("Set %1 to a folder that is, with all above it, yours or root's.", setting)
        raise launcher_failed(message, join(way, other))
