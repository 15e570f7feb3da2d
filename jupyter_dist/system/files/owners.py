"""Who can replace what is in a folder: the folders of a path are opened one by one, and judged by their descriptors."""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
import stat
import struct
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say

LOCAL_GROUPS = Path("/etc/group")
MAX_LINKS = 40  # as the kernel
ALL_USERS = say("all users")

_ACCESS_LIST = "system.posix_acl_access"
_ENTRY = struct.Struct("<HHI")  # tag, permissions, id of a user or group
_USER, _GROUP_OBJ, _GROUP, _MASK = 0x02, 0x04, 0x08, 0x10
_WRITE = 2


class Others(NamedTuple):
    """A folder or link on the way to a path, and who else could replace what is there."""

    place: Path
    who: str
    own_it: bool = False  # it is theirs; else its mode or its access list lets them write


def open_folder(path: Path) -> int:
    """Return a descriptor of a folder that no other user can replace, for `os.open(name, dir_fd=...)`.

    Links are followed. Each folder and link on the way, and the folder itself, must belong to root or this user, and
    no other user may write there, by its mode or its access list; in a folder with the sticky bit, users can rename
    their own entries only.

    Raises:
        JupyterDistError: `not_yours`, with the place and who can write there.
        OSError: there is no such folder.
    """
    walk = _Descent()
    try:
        walk.go(path)
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=walk.fd)
    finally:
        walk.close()


def open_above(path: Path) -> Others | None:
    """Return the first folder above a path in which other users can replace the path or its parents, and which users.

    None if there is no such folder; what is missing is not judged. Judges as `open_folder`.
    """
    walk = _Descent()
    try:
        walk.go(path.parent)
    except OSError:
        return None  # it is created when needed, or cannot be reached
    except JupyterDistError:
        assert walk.found is not None
        return walk.found
    finally:
        walk.close()
    return None


class _Descent:
    """The way from the root folder to a path, of which only the last folder is open."""

    def __init__(self) -> None:
        self.fd = -1
        self.found: Others | None = None
        self._where = Path("/")

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def go(self, path: Path) -> None:
        rest = [*reversed(path.absolute().parts)]
        links = 0
        while rest:
            name = rest.pop()
            target = self._link(name) if self.fd >= 0 and name not in ("/", "..") else None
            if target is None:
                self._enter(name)
            elif (links := links + 1) > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(self._where / name))
            else:
                rest += reversed(Path(target).parts)

    def _link(self, name: str) -> str | None:
        found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        if not stat.S_ISLNK(found.st_mode):
            return None
        self._judge_owner(self._where / name, found)  # its owner can make another one where the sticky bit is set
        return os.readlink(name, dir_fd=self.fd)

    def _enter(self, name: str) -> None:
        flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC  # O_PATH: to search is enough
        fd = os.open(name, flags) if name == "/" else os.open(name, flags, dir_fd=self.fd)
        self.close()
        self.fd = fd
        self._where = Path("/") if name == "/" else self._where.parent if name == ".." else self._where / name
        found = os.fstat(fd)
        self._judge_owner(self._where, found)
        if not found.st_mode & stat.S_ISVTX and (others := _writers(fd, found)) is not None:
            self._refuse(Others(self._where, others))

    def _judge_owner(self, place: Path, found: os.stat_result) -> None:
        if found.st_uid not in _trusted():
            self._refuse(Others(place, say("the user %1", _user_name(found.st_uid)), own_it=True))

    def _refuse(self, found: Others) -> None:
        self.found = found
        message = say("What is in %1 can be replaced by %2.", found.place, found.who)
        raise JupyterDistError("not_yours", message, say("Use a folder that only you can write, with the mode 0700."))


def _trusted() -> set[int]:
    """Return root, this user, and who owns the root folder: in a container, root may have another number."""
    return {0, os.getuid(), os.stat("/").st_uid}


def _writers(fd: int, found: os.stat_result) -> str | None:
    """Return which other users may write in a folder."""
    if found.st_mode & stat.S_IWOTH:
        return ALL_USERS
    if not found.st_mode & stat.S_IWGRP:  # with an access list, these are its mask
        return None
    for tag, number in _access_list(fd) or [(_GROUP_OBJ, 0)]:
        if tag == _USER and number not in _trusted():
            return say("the user %1", _user_name(number))
        gid = found.st_gid if tag == _GROUP_OBJ else number
        if tag in (_GROUP_OBJ, _GROUP) and _has_others(gid):
            return say("members of the group %1", _group_name(gid))
    return None


def _access_list(fd: int) -> list[tuple[int, int]]:
    """Return the tags and ids of the entries of a folder's access list that may write; empty if it has none."""
    content = b""
    with contextlib.suppress(OSError):  # none, or its file system knows none
        content = os.getxattr(f"/proc/self/fd/{fd}", _ACCESS_LIST)
    entries = list(_ENTRY.iter_unpack(content[4:])) if len(content) % _ENTRY.size == 4 else []
    mask = next((allowed for tag, allowed, _ in entries if tag == _MASK), _WRITE)
    return [(tag, number) for tag, allowed, number in entries if allowed & mask & _WRITE]


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


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""
