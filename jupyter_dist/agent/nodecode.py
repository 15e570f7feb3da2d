"""The code that a node runs: a copy of this package, which its node agent makes when it starts.

An upgrade of the package while the group lives changes nothing on the node: zygotes and ranks that start later, and
modules that ranks import later, come from the copy. The server makes one for all groups on its machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from jupyter_dist.system.files.codecopy import ONLY_OF_SERVER

PACKAGE = Path(__file__).resolve().parents[1]
PREFIX = "jupyter-dist-node-"
VARIABLE = "JUPYTER_DIST_NODE_START"  # of the process that runs the copy; it takes the variable out
CODE = "code"


@dataclass(frozen=True)
class NodeStart:
    """A node agent whose code has been copied: the process that made the copy has become this one."""

    folder: str  # of the node, with the copy; held by a lock
    lock: int
    node_rank: int | None


def start_of_copy() -> NodeStart | None:
    """Return how this process was started, if it runs a copy."""
    text = os.environ.pop(VARIABLE, None)
    if text is None:
        return None
    start = NodeStart(**json.loads(text))
    os.set_inheritable(start.lock, False)
    return start


def run_copy(file: str, node_rank: int | None) -> str:
    """Have this process run a copy of its code; return the reason if there cannot be one, such as a full disk."""
    folder = None
    try:
        _remove_abandoned()
        folder = tempfile.mkdtemp(prefix=PREFIX)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        with contextlib.suppress(OSError):  # a file system without locks: nobody can take the folder for abandoned
            fcntl.flock(lock, fcntl.LOCK_SH)
        package = Path(folder, CODE, PACKAGE.name)
        shutil.copytree(PACKAGE, package, ignore=_left_out)
        os.set_inheritable(lock, True)
        os.environ[VARIABLE] = json.dumps(asdict(NodeStart(folder, lock, node_rank)))
        os.execv(sys.executable, [sys.executable, str(package / "agent" / "boot.py"), "node", file])  # noqa: S606 - no shell is wanted
    except (OSError, shutil.Error) as err:
        os.environ.pop(VARIABLE, None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        return f"{err}"[:200]


def _left_out(folder: str, names: list[str]) -> list[str]:
    """Return the names in a folder that are not copied: all but sources, and what this Python has compiled."""
    kept = (".py", f".{sys.implementation.cache_tag}.pyc")
    others = [name for name in names if not name.endswith(kept) and not os.path.isdir(os.path.join(folder, name))]
    return [*others, *(ONLY_OF_SERVER if folder == str(PACKAGE) else ())]


def _remove_abandoned() -> None:
    """Remove the copies of this user's node agents that were killed together with their watchers."""
    for code in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{CODE}"):
        with contextlib.suppress(OSError):  # of another user, or in use
            fd = os.open(code.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                if os.fstat(fd).st_uid == os.getuid():
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(code.parent, ignore_errors=True)
            finally:
                os.close(fd)
