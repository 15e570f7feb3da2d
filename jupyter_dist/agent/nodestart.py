"""How a node agent starts: from a copy of its code (system/code), so that an upgrade changes nothing on the node.

It runs the installed package, or the archive that its job brings along, and becomes a process that runs the copy, which
all nodes of one user and one version on a machine share.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from jupyter_dist.system.code import running
from jupyter_dist.system.code.copies import CodeCopy, machine_places
from jupyter_dist.system.code.sources import ARCHIVE, own_archive, own_sources
from jupyter_dist.system.files.jsonfile import read_json
from jupyter_dist.system.files.places import temporary_folders
from jupyter_dist.version import __version__

PREFIX = "jupyter-dist-node-"  # of a node's own folder
_VARIABLE = "JUPYTER_DIST_NODE_START"  # of the process that runs the copy; it takes the variable out
_USED = "used"  # a file in the folder of a node that holds its lock


@dataclass(frozen=True)
class NodeStart:
    """A node agent that runs a copy: the process that made the copy has become this one."""

    lock: int  # of the copy
    node_rank: int | None


def start_of_copy() -> NodeStart | None:
    """Return how this process was started, if it runs a copy."""
    text = os.environ.pop(_VARIABLE, None)
    if text is None:
        return None
    start = NodeStart(**json.loads(text))
    os.set_inheritable(start.lock, False)
    return start


def run_copy(file: str, node_rank: int | None) -> str:
    """Have this process run a copy of its code; return why there is none, such as a full disk."""
    archive = own_archive()
    beside = [] if archive is None else [archive.with_name("code")]  # in the folder of the job
    try:
        copy = CodeCopy(own_sources(), [*machine_places(), *beside])
        if archive is not None and str(archive.parent) == "/dev/fd":  # from an actor of Ray
            os.close(int(archive.name))
        boot = copy.boot_script()
        if copy.problems:
            print_error(f"the copy of its code is in {boot.parents[3]}, because of {'; '.join(copy.problems)}.")
        os.set_inheritable(copy.lock, True)
        os.environ[_VARIABLE] = json.dumps(asdict(NodeStart(copy.lock, node_rank)))
        _become([str(boot), "node", file])
    except OSError as err:
        os.environ.pop(_VARIABLE, None)
        return err.strerror or str(err)


def run_code_beside(file: str, node_rank: int | None) -> None:
    """Have this process run the code that lies beside the join file, if that is of another version. Raises OSError."""
    archive = Path(file).with_name(ARCHIVE)
    try:
        theirs = str(read_json(Path(file))["version"])
        found = archive.stat()
    except (OSError, ValueError, LookupError, TypeError):
        return
    if theirs == __version__ or found.st_uid != os.getuid() or found.st_mode & 0o022:
        return
    print_error(f"the group runs jupyter_dist {theirs}: its code is used, and not version {__version__}.")
    if node_rank is not None:
        os.environ["JUPYTER_DIST_NODE_RANK"] = str(node_rank)
    _become([str(archive), "node", file])


def run_installed(file: str, node_rank: int | None) -> NoReturn:
    """Have this process run the installed package. Raises OSError."""
    rank = [] if node_rank is None else [f"--node-rank={node_rank}"]
    _become(["-m", "jupyter_dist.agent.node", *rank, file])


def print_error(text: str) -> int:
    """Print a sentence where a node's output goes; return the exit code of a command that failed."""
    sys.stderr.write(f"jupyter dist join: {' '.join(text.split())}\n")
    return 1


@contextlib.contextmanager
def own_folder() -> Iterator[str]:
    """Create the folder of this node, and remove it at the end. Raises OSError."""
    _remove_abandoned()
    folder = _new_folder()
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # the agent has it, too: a fork
    try:
        with contextlib.suppress(OSError):  # without locks, or space, it is never taken for abandoned
            fcntl.flock(lock, fcntl.LOCK_SH)
            Path(folder, _USED).touch()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # an agent that was killed has not
        os.close(lock)


def _become(arguments: list[str]) -> NoReturn:
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - no shell is wanted


def _new_folder() -> str:
    problem: OSError | None = None
    for place in temporary_folders():
        try:
            return tempfile.mkdtemp(prefix=PREFIX, dir=place)
        except OSError as err:
            problem = problem or err
    assert problem is not None
    raise problem


def _remove_abandoned() -> None:
    """Remove the folders of this user's nodes that were killed together with their watchers."""
    for used in (path for place in temporary_folders() for path in place.glob(f"{PREFIX}*/{_USED}")):
        with contextlib.suppress(OSError):  # of another user, or in use
            fd = os.open(used.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                if os.fstat(fd).st_uid == os.getuid():
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(used.parent, ignore_errors=True)
            finally:
                os.close(fd)


def leave_copy(start: NodeStart | None) -> None:
    """Remove the copy at the end, if no other node uses it."""
    running.leave(None if start is None else start.lock)
