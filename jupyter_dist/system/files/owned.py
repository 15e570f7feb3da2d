"""Whether files are this user's alone: unpickling runs code, so files that others could have written are not read."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import weakref
from collections.abc import Iterator
from pathlib import Path

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.system.files.owners import open_above, open_folder

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class OwnFolder:
    """A folder that is held by a descriptor; its files and folders are judged as they are opened, and links refused.

    Attributes:
        path: of the folder.
        fd: the descriptor.

    Raises:
        JupyterDistError: `not_yours`, if another user owns, can write or can replace it.
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path, *, judges_above: bool = True) -> None:
        self._hold(path, open_folder(path) if judges_above else os.open(path, os.O_RDONLY | _FOLDER))

    def _hold(self, path: Path, fd: int) -> None:
        self.path, self.fd = path, fd
        weakref.finalize(self, os.close, fd)
        _judge(path, os.fstat(fd))

    def inner(self, name: str, *, creates: bool = False) -> OwnFolder:
        """Hold a folder of this one, which is created on request. Raises as above."""
        found = OwnFolder.__new__(OwnFolder)
        with self.entered(name, creates=creates) as fd:
            found._hold(self.path / name, os.dup(fd))
        return found

    def judge(self, name: str) -> None:
        """Judge a folder of this one, whose owner alone can replace it from then on. Raises as above."""
        found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            raise _not_yours(f"{self.path / name} is a link, or no folder.")
        _judge(self.path / name, found)

    def open(self, *names: str) -> int:
        """Return a descriptor of a file, to read it. Raises as above."""
        # Non-blocking: to open a pipe would wait for its other end.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        if len(names) == 1:
            return self._opened(self.fd, names, flags)
        with self.entered(*names[:-1]) as folder:
            return self._opened(folder, names, flags)

    @contextlib.contextmanager
    def entered(self, *names: str, creates: bool = False) -> Iterator[int]:
        """Hold a descriptor of a folder, which is created on request. Raises as above."""
        folder = os.dup(self.fd)
        try:
            for count, name in enumerate(names, 1):
                if creates:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=folder)
                inner = self._opened(folder, names[:count], os.O_RDONLY | _FOLDER)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)

    def read(self, *names: str, max_bytes: int) -> bytes:
        """Return the content of a file. Raises as above, and ValueError if it is longer."""
        with open(self.open(*names), "rb") as file:
            content = file.read(max_bytes + 1)
        if len(content) > max_bytes:
            message = f"{names[-1]} is longer than {max_bytes >> 20} MiB"
            raise ValueError(message)
        return content

    def _opened(self, folder: int, names: tuple[str, ...], flags: int) -> int:
        place = self.path.joinpath(*names)
        try:
            fd = os.open(names[-1], flags, dir_fd=folder)
        except OSError as err:
            if err.errno in (errno.ELOOP, errno.ENOTDIR):
                raise _not_yours(f"{place} is a link, or no folder.") from None
            raise
        try:
            _judge(place, os.fstat(fd))
        except BaseException:
            os.close(fd)
            raise
        return fd


def check_own(path: Path) -> os.stat_result:
    """Refuse a file or folder that another user owns or can write.

    Raises:
        JupyterDistError: `not_yours`.
        OSError: it cannot be read.
    """
    found = path.lstat()
    _judge(path, found)
    return found


def check_folder(path: Path) -> None:
    """Refuse a folder that other users own, can write or can replace. Raises like `check_own`."""
    check_own(path)
    if (above := open_above(path / "any")) is not None:
        raise _not_yours(say("%1, in which %2 is, can be written by %3.", above.place, path, above.who))


def _judge(path: Path, found: os.stat_result) -> None:
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise _not_yours(say("%1 is neither a file nor a folder.", path))
    if found.st_uid not in (os.getuid(), 0):
        raise _not_yours(say("%1 belongs to another user, with the id %2.", path, found.st_uid))
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):  # with an access list, the bits of the group are its mask
        raise _not_yours(say("%1 can be written by others (mode %2).", path, f"{stat.S_IMODE(found.st_mode):04o}"))


def _not_yours(message: str) -> JupyterDistError:
    hint = join(
        say("A restore runs code from the files."), say("Use a folder that only you can write, with the mode 0700.")
    )
    return JupyterDistError("not_yours", message, hint)
