"""The code that groups run: a copy of this package from when the server started.

Upgrading the package does not affect a running server or group: zygotes and ranks that start later, and modules that
ranks import later, come from the version that the group was started with. Groups and servers of one version share a
copy. Each holds a shared lock on its folder, which the kernel releases with the process; the last one removes it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import threading
import time
from pathlib import Path

from jupyter_dist.system.files.codecopy import ONLY_OF_SERVER
from jupyter_dist.system.files.private import make_folder

from .directories import claim

PACKAGE = Path(__file__).resolve().parents[2]
BOOT_PATH = Path("jupyter_dist", "agent", "boot.py")
ABANDONED_SECONDS = 600.0


class PackageCode:
    """The Python files of this package, in memory (about 2 MB) until the first group needs them on disk."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._fd: int | None = None
        self._writing = threading.Lock()  # groups are started in threads
        self._folder: Path | None = None
        sources = [path for path in sorted(PACKAGE.rglob("*.py")) if _is_for_groups(path)]
        self._sources = {path.relative_to(PACKAGE): (path.read_bytes(), path.stat().st_mtime_ns) for path in sources}
        self.digest = hashlib.sha256(repr(sorted(self._sources.items())).encode()).hexdigest()[:12]  # of the version
        self._compiled: dict[Path, bytes] = {}
        for source in sources:
            for path in source.parent.glob(f"__pycache__/{source.stem}.*.pyc"):
                with contextlib.suppress(OSError):  # being replaced right now
                    self._compiled[path.relative_to(PACKAGE)] = path.read_bytes()

    def boot_script(self) -> Path:
        """Return the script that starts a group's processes; write the copy if it does not exist. Raises OSError."""
        with self._writing:
            if self._folder is None or not (self._folder / BOOT_PATH).exists():
                self.release()
                self._folder = self._hold()
            return self._folder / BOOT_PATH

    def release(self) -> None:
        """Release this server's copy, and remove unused ones. Idempotent."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd = self._folder = None
        remove_unused(self._parent)

    def _hold(self) -> Path:
        self._parent = claim(self._parent)
        folder = self._parent / f"code-{self.digest}"
        while True:
            with contextlib.suppress(FileNotFoundError):
                self._fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
                fcntl.flock(self._fd, fcntl.LOCK_SH)
                if self._is_whole(folder):
                    return folder
                fd, self._fd = self._fd, None  # before it can fail: its number may soon be another file's
                os.close(fd)  # removed meanwhile, or damaged: write another copy beside this one
                folder = folder.with_name(f"code-{self.digest}-{secrets.token_hex(2)}")
            self._write(folder)

    def _write(self, folder: Path) -> None:
        unready = folder.with_name(f"new-{secrets.token_hex(4)}")
        try:
            for name, (content, mtime_ns) in self._sources.items():
                path = unready / PACKAGE.name / name
                make_folder(path.parent)
                path.write_bytes(content)
                os.utime(path, ns=(mtime_ns, mtime_ns))  # compiled code is matched to its source by this
            for name, content in self._compiled.items():
                path = unready / PACKAGE.name / name
                path.parent.mkdir(mode=0o700, exist_ok=True)
                path.write_bytes(content)
            unready.rename(folder)
        except OSError as err:
            if err.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # another server was faster
                raise
        finally:
            shutil.rmtree(unready, ignore_errors=True)

    def _is_whole(self, folder: Path) -> bool:
        try:
            package = folder / PACKAGE.name
            return all((package / name).read_bytes() == content for name, (content, _) in self._sources.items())
        except OSError:
            return False


def remove_unused(parent: Path) -> None:
    """Remove the copies that no group or server uses, including copies of killed servers."""
    for folder in parent.glob("code-*"):
        _remove_if_unused(folder)
    for folder in parent.glob("new-*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        parent.rmdir()


def _is_for_groups(path: Path) -> bool:
    return path.relative_to(PACKAGE).parts[0] not in ONLY_OF_SERVER


def _remove_if_unused(folder: Path) -> None:
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        pass  # a group uses it
    finally:
        os.close(fd)
