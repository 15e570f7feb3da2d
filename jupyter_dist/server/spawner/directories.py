"""The directories of groups: private, with paths short enough for a unix socket; and the group.json in each.

A rank can write group.json, too, and the server shows a group from it until the agent answers: it is checked.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import math
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say, text_of
from jupyter_dist.protocol.ranks import MAX_RANKS
from jupyter_dist.protocol.wire.specs import has_values, named
from jupyter_dist.system.files.locks import is_at
from jupyter_dist.system.files.owners import open_above
from jupyter_dist.system.files.places import group_places
from jupyter_dist.system.files.private import claim, make_private, write_private
from jupyter_dist.system.processes import read_process

log = logging.getLogger(__name__)

# sun_path holds 107 bytes; the rest is for the suffix of the socket's name while it is replaced.
MAX_SOCKET_PATH_BYTES = 90
_LONGEST = "/g-00000000/agent.sock"
MAX_GROUP_JSON_BYTES = 1 << 20
MAX_TEXT = 4096
LEAVING = "leaving"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}\Z")


def groups_directory(runtime_dir: str) -> Path:
    """Create and check the directory of all groups of this Jupyter runtime directory, and return it.

    Places that other users could rename or replace are tried last.

    Raises:
        JupyterDistError: `bad_directory`, if no place is private and short enough.
    """
    problems: list[str] = []
    for candidate in sorted(group_places(runtime_dir), key=lambda path: open_above(path) is not None):
        if not _is_utf8(str(candidate)):  # torch takes no other path for the store over which ranks meet
            problems.append(say("%1 is not UTF-8", repr(os.fsencode(candidate))))
            continue
        if len(os.fsencode(str(candidate) + _LONGEST)) > MAX_SOCKET_PATH_BYTES:
            problems.append(say("%1 is too long for a unix socket path", candidate))
            continue
        try:
            return _with_locks(claim(candidate))
        except (OSError, JupyterDistError) as err:
            problems.append(text_of(err))
    hint = join(*problems, say("Set JUPYTER_RUNTIME_DIR to a folder of your own."), by="; ")
    raise JupyterDistError("bad_directory", say("There is no private directory for groups."), hint)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _with_locks(directory: Path) -> Path:
    """Return the directory if its file system has locks, which show which server has a group. Raises OSError.

    Some network file systems have none: NFS without its lock daemon, Lustre mounted without `flock`.
    """
    probe = directory / f".lock-{secrets.token_hex(4)}"  # a file: NFS locks folders without asking its server
    fd = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as err:
        raise OSError(err.errno, f"file locks (flock) do not work there ({err.strerror})", str(directory)) from err
    finally:
        os.close(fd)
        probe.unlink(missing_ok=True)
    return directory


def bad_directory(directory: Path, err: OSError) -> JupyterDistError:
    """Return the error for a directory that cannot be written to."""
    hint = say("Free some space there, or set JUPYTER_RUNTIME_DIR.")
    return JupyterDistError("bad_directory", f"{directory}: {err.strerror or err}.", hint)


class GroupDirectory:
    """The directory of one group, with the lock of the server that has the group."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock_fd: int | None = None
        self.gets_values = False  # its agent, of 0.3.0, writes values of secrets into group.json

    @classmethod
    def create(cls, parent: Path) -> GroupDirectory:
        """Create a directory, locked by this server.

        Raises:
            JupyterDistError: `bad_directory`, if the system refuses: no space, read-only, not permitted.
        """
        directory = cls(parent / f"g-{secrets.token_hex(4)}")
        try:
            make_private(parent)
            make_private(directory.path)
            is_held = directory.hold()
        except OSError as err:
            directory.remove()
            raise bad_directory(parent, err) from err
        if not is_held:
            raise JupyterDistError("bad_directory", say("Another server took %1.", directory.path), say("Try again."))
        return directory

    @property
    def group_id(self) -> str:
        """Return the group's id: the name of the directory."""
        return self.path.name

    @property
    def socket_path(self) -> Path:
        """Return the path of the agent's socket."""
        return self.path / "agent.sock"

    @property
    def journal_path(self) -> Path:
        """Return the path of the journal."""
        return self.path / "journal"

    @property
    def log_path(self) -> Path:
        """Return the path of the agent's own log."""
        return self.path / "agent.log"

    def hold(self) -> bool:
        """Take the lock; return False if another running server has it. The kernel releases it when we die.

        Raises:
            OSError: the folder is gone, or its file system has no locks.
        """
        if self._lock_fd is not None:
            return True
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock_fd = os.open(self.path / "server.lock", flags, 0o600)
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            os.close(lock_fd)
            return False
        except OSError:
            os.close(lock_fd)
            raise
        self._lock_fd = lock_fd
        self._write_lock(str(os.getpid()))
        return True

    def announce_release(self) -> None:
        """Have servers that want the group wait, because this server is about to release it."""
        self._write_lock(f"{os.getpid()} {LEAVING}")

    def is_being_released(self) -> bool:
        """Whether the server that has the lock is ending, or has just been killed."""
        with contextlib.suppress(OSError, ValueError):
            holder, _, what = _last_bytes(self.path / "server.lock", MAX_TEXT).decode().partition(" ")
            process = read_process(int(holder))
            return what == LEAVING or process is None or process.state in "ZX"
        return False

    def _write_lock(self, text: str) -> None:
        if self._lock_fd is not None:
            with contextlib.suppress(OSError):  # a full disk: others do not wait
                os.ftruncate(self._lock_fd, 0)
                os.pwrite(self._lock_fd, text.encode(), 0)

    def keep(self) -> None:
        """Take the lock again if the folder was removed, and the agent has created it again."""
        held = self._lock_fd
        if held is None:
            return
        with contextlib.suppress(OSError):
            if is_at(self.path / "server.lock", held):
                return
        self._lock_fd = None
        with contextlib.suppress(OSError):  # not there yet
            if self.hold():
                os.close(held)
                return
        self._lock_fd = held

    def release(self) -> None:
        """Release the lock, so that another server can take the group."""
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def read_group_json(self) -> dict[str, Any]:
        """Return the content of the agent's group.json; empty if it cannot be read. It has no values of secrets then.

        The result has them, if an agent of 0.3.0 wrote them: such a group is started again with them.
        """
        path = self.path / "group.json"
        try:
            content = json.loads(_last_bytes(path, MAX_GROUP_JSON_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        if isinstance(content, dict) and has_values(content.get("spec")):
            self.gets_values = True
            try:
                write_private(path, json.dumps({**content, "spec": named(content["spec"])}, indent=1))
            except OSError as err:
                log.warning("jupyter_dist: %s keeps values of environment variables: %s", path, err)
        return believable(content)

    def age_seconds(self) -> float:
        """Return the seconds since the directory's last change; 0 if it is gone."""
        try:
            return time.time() - self.path.stat().st_mtime
        except OSError:
            return 0.0

    def log_tail(self, max_bytes: int = 1500) -> str:
        """Return the end of the agent's log."""
        try:
            return _last_bytes(self.log_path, max_bytes).decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def remove(self) -> None:
        """Remove the directory, after the agent has ended."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.release()


def _last_bytes(path: Path, max_bytes: int) -> bytes:
    """Return the end of a file of a group. Raises OSError, also for a link or a pipe that a rank put there."""
    # Non-blocking: opening a pipe would block the server forever.
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a file", str(path))
        file.seek(max(0, found.st_size - max_bytes))
        return file.read(max_bytes)


# -- group.json -----------------------------------------------------------------------------------------


def believable(content: Any) -> dict[str, Any]:
    """Return group.json without invalid fields.

    Required fields get a default, because a running group must always be shown.
    """
    if not isinstance(content, dict):
        return {}
    found = {name: value for name, value in content.items() if name not in _FIELDS or _FIELDS[name](value)}
    if content.get("spec") is not None:
        found["spec"] = _spec(content["spec"])
    return found


def _spec(value: Any) -> dict[str, Any]:
    given = value if isinstance(value, dict) else {}
    needed = {name: given[name] if check(given.get(name)) else other for name, (check, other) in _SPEC.items()}
    return {**given, **needed}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _is_count(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_environment(value: Any) -> bool:
    return isinstance(value, dict) and len(value) <= 100 and all(v is None or _is_text(v) for v in value.values())


def _is_devices(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_RANKS and all(_is_count(item, 0, MAX_RANKS) for item in value)


# Each with its default. Values of a later version are kept.
_SPEC: dict[str, tuple[Callable[[Any], bool], Any]] = {
    "name": (lambda value: _is_text(value) and bool(_NAME.match(value)), "damaged"),
    "world_size": (lambda value: _is_count(value, 1, MAX_RANKS), 1),
    "accelerator": (_is_text, "cpu"),
    "backend": (_is_text, "gloo"),
    "cwd": (_is_text, ""),
    "devices": (_is_devices, []),
}

_FIELDS: dict[str, Callable[[Any], bool]] = {
    "agent_pid": lambda value: _is_count(value, 1, 1 << 31),
    "created_at": _is_time,
    "environment": lambda value: value is None or _is_environment(value),
    "protocol": lambda value: _is_count(value, 0, 1 << 31),
    "most_ranks": lambda value: _is_count(value, 0, MAX_RANKS),
    "version": _is_text,
    "spec": lambda value: value is None,  # else see above
}
