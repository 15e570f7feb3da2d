"""A headless server for processes that have none: VS Code, nbclient, a script, a shell. docs/decisions/0012.

All clients of one runtime folder share it. It belongs to none of them and ends some seconds after the last one.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from threading import Event
from typing import IO

from jupyter_core.paths import jupyter_runtime_dir

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.system.inherited import without_credentials

from .attendance import lock_path, open_lock
from .running import PRIVATE, Server, running_servers

START_SECONDS = 60.0
POLL_SECONDS = 0.05
END_SECONDS = 1.0
PREPARE_VARIABLE = "JUPYTER_DIST_PREPARE"  # 0: import torch when a group is started, not before

# The server's parent ends at once: no process reaps it, and ending a client with its children leaves it running.
# The first line of its answer is its process, so that it can be ended before it serves.
DETACHED = """
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
os.write(1, b"%d\\n" % os.getpid())
os.execv(sys.executable, [sys.executable, "-m", "jupyter_dist.server.main"])
"""
# Variables that a server needs. Groups get the environment of the client that starts them, not of the first client.
KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|TEMP|TZ|LANG|LC_\w+|XDG_\w+|JUPYTER\w*|IPYTHONDIR|PYTHON\w*|VIRTUAL_ENV"
    r"|CONDA_\w+|LD_LIBRARY_PATH|LD_PRELOAD|COVERAGE\w*"
)


def private_server(root_dir: str = "/", *, prepare: bool = False, given_up: Event | None = None) -> Server:
    """Return this user's private server; start one if none is running. `prepare`: have it prepare for a group.

    When another thread sets `given_up`, a starting server is ended, and `no_server` is raised.

    The process with the lock is the server, or is about to become it: there is never a second one, and a new one starts
    only when the old one has ended, and has released all groups with its process.

    Raises:
        JupyterDistError: `no_server`, with its output if it does not start.
    """
    given_up = given_up or Event()
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            lock = open_lock("server")
        except OSError as err:
            message = f"A private Jupyter server needs the folder of {err.filename}: {err.strerror}."
            raise JupyterDistError("no_server", message, "Set JUPYTER_RUNTIME_DIR to a folder of your own.") from err
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return _start(root_dir, lock, prepare, given_up)
        except BlockingIOError:
            if (found := next((server for server in running_servers() if server.is_private), None)) is not None:
                return found
        except OSError as err:
            message = f"A private Jupyter server needs file locks (flock), which do not work here: {err.strerror}."
            raise JupyterDistError(
                "no_server", message, "Set JUPYTER_RUNTIME_DIR to a folder of this machine."
            ) from err
        finally:
            os.close(lock)
        if given_up.wait(POLL_SECONDS) or time.monotonic() > deadline:
            message = f"Your private Jupyter server has neither started nor ended within {START_SECONDS:g} s."
            raise JupyterDistError("no_server", message, "The machine may be overloaded. Try again.")


def _start(root_dir: str, lock: int, prepare: bool, given_up: Event) -> Server:
    token = secrets.token_urlsafe(32)
    with tempfile.TemporaryFile() as errors:
        process = _spawn(errors, lock)
        # The token is sent through the pipe, because all users can read arguments.
        prepare = prepare and os.environ.get(PREPARE_VARIABLE) != "0"
        own = {"python": sys.executable, "environ": own_environ()} if prepare else None
        wanted = {"token": token, "root_dir": root_dir, "lock": lock, "prepare": own, **_places()}
        said = _talk(process, json.dumps(wanted).encode() + b"\n", given_up)
        answer = said.strip().rpartition(b"\n")[2] if said is not None else b""
        if not answer.startswith(b"{"):
            raise _no_server(errors, has_ended=said is not None)
    found = json.loads(answer)
    return Server(found["url"], token, found["pid"], is_local=True, is_private=True)


def _talk(process: subprocess.Popen[bytes], wanted: bytes, given_up: Event) -> bytes | None:
    """Send the settings to the server, and return its whole answer; None if it did not answer, and was ended."""
    deadline = time.monotonic() + START_SECONDS
    told: bytes | None = wanted
    while True:
        try:
            return process.communicate(told, POLL_SECONDS)[0]
        except subprocess.TimeoutExpired as err:
            told = None
            if given_up.is_set() or time.monotonic() > deadline:
                _end(process, err.output or b"")
                return None


def _end(process: subprocess.Popen[bytes], said: bytes) -> None:
    """Kill a server that has not answered: its first session, and the session that it created, if reported."""
    for leader in [process.pid, *(int(line) for line in said.splitlines() if line.isdigit())]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):  # the process waits for a disk
        process.wait(END_SECONDS)


def _no_server(errors: IO[bytes], *, has_ended: bool) -> JupyterDistError:
    errors.seek(0)
    said = errors.read()[-2000:].decode("utf-8", "replace").strip()
    if has_ended:
        message = f"A private Jupyter server could not be started with {sys.executable}."
        return JupyterDistError("no_server", message, said or "It printed nothing.")
    message = f"A private Jupyter server did not start within {START_SECONDS:g} s with {sys.executable}."
    return JupyterDistError("no_server", message, said or "The machine may be overloaded, or a file system hang.")


def own_environ() -> str:
    """Return the environment of this process as the API takes it."""
    return "".join(f"{name}={value}\0" for name, value in os.environ.items())


def _places() -> dict[str, str]:
    """Return where the server's clients are counted, and where they look for it."""
    return {"clients": str(lock_path("clients")), "runtime_dir": jupyter_runtime_dir(), "mark": PRIVATE}


def _spawn(errors: IO[bytes], lock: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", DETACHED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        pass_fds=[lock],  # the server holds the lock until it ends
        cwd="/",
        env={name: value for name, value in without_credentials(os.environ).items() if KEPT.fullmatch(name)},
        start_new_session=True,  # Ctrl-C must only reach us; the API interrupts the ranks
    )
