"""Copies of the package on the disk of a machine, which server, groups and nodes run in place of the installed one.

Upgrading the package does not affect who runs a copy: zygotes and ranks that start later, and modules that ranks
import later, come from the version that the group was started with. Processes of one version and one user share a copy.
Each holds a shared lock on it, which the kernel releases with the process; the last one removes it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.system.files.locks import is_at
from jupyter_dist.system.files.owners import open_above
from jupyter_dist.system.files.places import temporary_folders
from jupyter_dist.system.files.private import claim, is_private, make_folder, make_private

from .running import LOCK, PREFIX, UNREADY
from .sources import Sources

BOOT_PATH = Path("jupyter_dist", "agent", "boot.py")
ABANDONED_SECONDS = 600.0
_FOLDERS_OF_0_2 = "code-*"  # locked as a whole


def machine_places() -> list[Path]:
    """Return where this user's copies on this machine may be, the preferred place first."""
    return [folder / f"jupyter_dist-{os.getuid()}-code" for folder in temporary_folders()]


def remove_unused_of_machine() -> None:
    """Remove this user's unused copies in temporary folders, also of killed servers with other runtime folders."""
    for folder in temporary_folders():
        for parent in folder.glob(f"jupyter_dist-{os.getuid()}-*code*"):
            if is_private(parent):
                remove_unused(parent)


class CodeCopy:
    """The copy of a version that this process uses, from when it first needs it on disk."""

    def __init__(self, sources: Sources, places: Sequence[Path]) -> None:
        """Write nothing yet.

        Args:
            sources: the version.
            places: folders for copies, the preferred one first; the others are used if that fails.
        """
        self.digest = sources.digest
        self.problems: list[str] = []  # why places before the one of the copy could not be used, as parts of sentences
        self._sources = sources
        self._places = places
        self._parent: Path | None = None
        self._folder: Path | None = None
        self._fd: int | None = None
        self._writing = threading.Lock()  # groups are started in threads

    @property
    def lock(self) -> int:
        """Return the descriptor that holds the copy, for a program that this process becomes."""
        assert self._fd is not None
        return self._fd

    def boot_script(self) -> Path:
        """Return the script that starts processes; write the copy if it does not exist.

        Raises:
            OSError: no place can have a copy; the text has the reason of each.
        """
        with self._writing:
            if self._folder is None or not (self._folder / BOOT_PATH).exists():
                self.release()
                self._folder = self._held_somewhere()
            return self._folder / BOOT_PATH

    def archive(self) -> bytes:
        """Return an archive of the version, for machines that see no copy of this one."""
        return self._sources.archive()

    def release(self) -> None:
        """Release the copy, and remove unused ones beside it. Idempotent."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd = self._folder = None
        if self._parent is not None:
            remove_unused(self._parent)

    def _held_somewhere(self) -> Path:
        self.problems = []
        remove_unused_of_machine()
        for number, place in enumerate(self._places):
            try:
                if number and (found := open_above(place)) is not None:  # the first is a place of the caller's choice
                    raise OSError(errno.EPERM, f"{found.who} can replace what is in it", str(found.place))
                self._parent = claim(place)
                return self._held(self._parent)
            except (OSError, JupyterDistError) as err:
                self.problems.append(f"{place.parent}: {getattr(err, 'strerror', None) or err}")
        raise OSError(errno.ENOSPC, "; ".join(self.problems))

    def _held(self, parent: Path) -> Path:
        remove_unused(parent)
        make_private(parent)  # removed by that, or by another process
        folder = parent / f"{PREFIX}{self.digest}"
        while True:
            if not os.path.lexists(folder):
                self._write(folder)
            if self._take(folder):
                return folder
            # Removed meanwhile, or damaged: write another copy beside this one.
            folder = folder.with_name(f"{PREFIX}{self.digest}-{secrets.token_hex(2)}")

    def _take(self, folder: Path) -> bool:
        """Hold the copy in this folder, if it is one."""
        if (fd := _opened(folder)) is None:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)
            is_whole = is_at(folder / LOCK, fd) and _is_own(folder) and self._sources.are_in(folder)
        except OSError:
            os.close(fd)
            raise
        if is_whole:
            self._fd = fd
        else:
            os.close(fd)
        return is_whole

    def _write(self, folder: Path) -> None:
        unready = folder.with_name(f"{UNREADY}{secrets.token_hex(4)}")
        try:
            make_folder(unready)
            self._sources.write(unready)
            os.close(os.open(unready / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            unready.rename(folder)
        except OSError as err:
            if err.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # another process was faster
                raise
        finally:
            shutil.rmtree(unready, ignore_errors=True)


def remove_unused(parent: Path) -> None:
    """Remove the copies that no process uses, including copies of killed ones."""
    for folder in [*parent.glob(f"{PREFIX}*"), *parent.glob(_FOLDERS_OF_0_2)]:
        with contextlib.suppress(OSError), _all_to_itself(folder):
            unready = folder.with_name(f"{UNREADY}{secrets.token_hex(4)}")
            folder.rename(unready)  # a copy is there as a whole, or not at all
            shutil.rmtree(unready, ignore_errors=True)
    for folder in parent.glob(f"{UNREADY}*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.lstat().st_ctime > ABANDONED_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        parent.rmdir()


@contextlib.contextmanager
def _all_to_itself(folder: Path) -> Iterator[None]:
    """Lock a copy that no process uses. Raises OSError: one does, or it is no copy of this user's."""
    if not _is_own(folder):
        raise PermissionError(errno.EPERM, "not a copy of this user", str(folder))
    fd = _opened(folder) if folder.name.startswith(PREFIX) else os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    if fd is None:
        raise FileNotFoundError(errno.ENOENT, "removed meanwhile", str(folder))
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


def _opened(folder: Path) -> int | None:
    """Return a descriptor of a copy's lock; None if there is no such copy. Raises OSError."""
    try:
        return os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None


def _is_own(folder: Path) -> bool:
    """Whether the path is a folder of this user, closed to others for writing."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
