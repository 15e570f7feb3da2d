"""%pip and the like: the ranks of a machine take turns, and where all run the same command, one of them does.

Several pips that install into one environment at a time may damage it.
"""

from __future__ import annotations

import builtins
import contextlib
import fcntl
import functools
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magics import packaging

from jupyter_dist.rank.guard.own import os, time
from jupyter_dist.system.files.locks import is_at

INSTALLERS = ("pip", "conda", "mamba", "micromamba", "uv")
_EXIT_CODE = "_exit_code"  # in the namespace, as IPython has it
_MAX_BYTES = 1 << 16
WAITS = "Waits for another rank, which installs packages in the same environment."
NAMED_SECONDS = 5.0  # what waits for longer is named
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class _Done:
    """A command that a rank has run; others that have waited meanwhile need not run it again."""

    command: str
    ended_ns: int  # of the machine's monotonic clock
    exit_code: int


def take_turns(shell: InteractiveShell) -> None:
    """Replace the magics that install packages, as far as this IPython has them."""
    for name in INSTALLERS:
        install = shell.find_line_magic(name)
        if install is not None:
            shell.register_magic_function(_in_turn(shell, name, install), "line", name)
    packaging.print = _print  # in place of Python's


def lock_file() -> Path:
    """Return the file that the ranks of this user, machine and environment lock. It exists while one has its turn."""
    environment = hashlib.sha256(sys.prefix.encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir(), f"jupyter_dist-{os.getuid()}-packages-{environment}")


def _in_turn(shell: InteractiveShell, name: str, install: Callable[[str], Any]) -> Callable[[str], Any]:
    @functools.wraps(install)
    def in_turn(line: str) -> None:
        asked, command = time.monotonic_ns(), f"%{name} {line}"

        def run() -> _Done:
            install(line)
            code = shell.user_ns.get(_EXIT_CODE)
            return _Done(command, time.monotonic_ns(), code if isinstance(code, int) else 0)

        done, is_own = _once(run, lambda done: done.command == command and done.ended_ns > asked)
        if not is_own:
            shell.user_ns[_EXIT_CODE] = done.exit_code
            failed = f", where it failed: exit status {done.exit_code}" if done.exit_code else ""
            _print(f"Another rank has run it in the same environment{failed}.")

    return in_turn


def _once(run: Callable[[], _Done], is_enough: Callable[[_Done], bool]) -> tuple[_Done, bool]:
    """Run a command in turn, unless another rank has done enough meanwhile; return what was done, and whether here."""
    path, tell = lock_file(), functools.cache(lambda: _print(WAITS))
    while (fd := _locked(path, tell)) is not None:
        try:
            done = _read(fd)
            if done is not None and is_enough(done):
                return done, False
            if is_at(path, fd):  # else a rank has had its turn: another one may have its turn by a new file
                try:
                    done = run()
                    with contextlib.suppress(OSError):  # a full disk
                        os.pwrite(fd, json.dumps(asdict(done)).encode(), 0)
                    return done, True
                finally:
                    path.unlink(missing_ok=True)
        finally:
            os.close(fd)
    return run(), True


def _locked(path: Path, tell: Callable[[], object]) -> int | None:
    """Return a descriptor of the file, which has been locked; None where none can be. A long wait calls `tell`."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        _lock(fd, tell)
    except BaseException as err:  # an interrupt, too
        os.close(fd)
        if not isinstance(err, OSError):
            raise
        return None
    return fd


def _lock(fd: int, tell: Callable[[], object]) -> None:
    deadline = time.monotonic() + NAMED_SECONDS
    while time.monotonic() < deadline:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(POLL_SECONDS)
    tell()
    return fcntl.flock(fd, fcntl.LOCK_EX)


def _read(fd: int) -> _Done | None:
    try:
        return _Done(**json.loads(os.pread(fd, _MAX_BYTES, 0)))
    except (ValueError, TypeError):
        return None


def _print(*values: object, **options: Any) -> None:
    """Print a sentence. IPython's notes are about a kernel."""
    texts = [value.replace("the kernel", "the ranks") if isinstance(value, str) else value for value in values]
    builtins.print(*texts, **options)  # noqa: T201 - in a cell
