"""The files that the nodes of a job write where the server reads them: the command's start, its end, its output.

A small shell script runs the command on each node and writes the files. It needs only `sh` on the node, so it reports
a missing interpreter of the group, too. Engines report these facts late, or not at all.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import signal
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jupyter_dist.system.files.private import make_folder

SCRIPT_NAME = "node.sh"  # as the command is called in its messages; its text is an argument
ENGINE_LOG = "engine.log"
MAX_TEXT_BYTES = 2000
_MAX_FILE_BYTES = 4096
_SIGNAL_EXIT = 128
LOST = "lost"  # in place of the exit code, where the engine has lost a node; then come its host and the reason

# The engine signals all processes of the job, often twice, so the script must survive the signals to the command, and
# the programs that write its files, too: they inherit what the shell ignores, but not its handlers.
# A job that was requeued runs again: its files have another number. The command may run the code that the job brings
# along (system/code/sources.py): its version is the group's, whatever was installed while the job waited.
SCRIPT = """\
[ -O "$1" ] || { echo "jupyter dist join: $1 does not belong to you." >&2; exit 126; }
trap '' HUP INT TERM USR1 USR2
umask 077
node=${JUPYTER_DIST_NODE_RANK:-${SLURM_PROCID:-0}}
JUPYTER_DIST_NODE_RANK=$node
export JUPYTER_DIST_NODE_RANK
code=$1/code.zip
base=$1/node-$node-${JUPYTER_DIST_NODE_RUN:-${SLURM_RESTART_COUNT:-0}}
APPTAINER_BIND=${APPTAINER_BIND:+$APPTAINER_BIND,}$1
SINGULARITY_BIND=$APPTAINER_BIND
export APPTAINER_BIND SINGULARITY_BIND
shift
host=${JUPYTER_DIST_NODE_HOST:-${SLURMD_NODENAME:-$(uname -n)}}
echo "$host" > "$base.new" && mv "$base.new" "$base.started"
after=
[ -r "$code" ] || for word do
  shift
  case $after$word in
    "$code")
      echo "jupyter dist join: $code cannot be read here, so the installed package is used." >> "$base.log"
      set -- "$@" -m jupyter_dist.agent.node
      after=code: ;;
    code:*) after= ;;
    *) set -- "$@" "$word" ;;
  esac
done
trap : HUP INT TERM USR1 USR2
"$@" < /dev/null >> "$base.log" 2>&1
code=$?
trap '' HUP INT TERM USR1 USR2
echo "$code $host" > "$base.new" && mv "$base.new" "$base.ended"
exit $code
"""

log = logging.getLogger(__name__)

_NAME = re.compile(r"node-(\d{1,6})-(\d{1,6})\.(started|ended)\Z")


@dataclass(frozen=True)
class AgentStarted:
    """The command was started on a node."""

    node: int
    host: str


@dataclass(frozen=True)
class AgentExited:
    """The command has ended on a node: by itself with a code, or killed by a signal."""

    node: int
    host: str
    code: int | None
    signal: int | None
    text: str  # the end of its output


class NodeFiles:
    """The folder of one job, which all its nodes see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: set[str] = set()
        self._starts: list[AgentStarted] = []
        self._ends: list[AgentExited] = []
        self._latest: dict[int, int] = {}  # the last run of the command, by node
        self._runs_on: dict[int, str] = {}  # the hosts on which it runs, by node

    @classmethod
    def create(cls, folder: Path, files: Iterable[Path]) -> NodeFiles:
        """Create the folder with copies of these files. Raises OSError."""
        make_folder(folder.parent)
        folder.mkdir(mode=0o700)
        folder.chmod(0o700)
        created = cls(folder)
        created.add({file.name: file.read_bytes() for file in files})
        return created

    def add(self, contents: Mapping[str, bytes]) -> None:
        """Write new files into the folder, for this user alone. Raises OSError."""
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for name, content in contents.items():
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                with open(os.open(name, flags, 0o600, dir_fd=fd), "wb") as file:
                    file.write(content)
        finally:
            os.close(fd)

    def copies(self, files: Iterable[Path]) -> dict[str, str]:
        """Return the path of each file's copy by the path of the file."""
        return {str(file): str(self.folder / file.name) for file in files}

    def command(self, command: Iterable[str], files: Iterable[Path]) -> list[str]:
        """Return the command that each node runs: the script, with the command whose files are the copies."""
        copies = self.copies(files)
        own = ["/bin/sh", "-c", SCRIPT, SCRIPT_NAME, str(self.folder)]
        return own + [copies.get(argument, argument) for argument in command]

    def read(self) -> None:
        """Read the files that nodes have written since the last call."""
        for name in sorted(self._names() - self._known, key=lambda name: (name.endswith("ended"), name)):
            found = _NAME.match(name)
            assert found is not None
            node, run = int(found[1]), int(found[2])
            try:
                words = _end_of(self.folder / name, _MAX_FILE_BYTES).split()
            except OSError:
                continue
            self._known.add(name)
            self._latest[node] = max(run, self._latest.get(node, 0))
            if found[3] == "started":
                self._runs_on[node] = words[0] if words else "?"
                self._starts.append(AgentStarted(node, self._runs_on[node]))
            elif self._runs_on.pop(node, None) is not None:
                self._ends.append(self._ended(node, run, words))

    def begin_again(self) -> None:
        """Expect the command to be started again on all nodes, because the job has been requeued."""
        self._latest.clear()
        self._runs_on.clear()

    def lose(self, hosts: Collection[str], text: str) -> None:
        """Mark the command as ended on these hosts, which will not write anything any more."""
        for node, host in list(self._runs_on.items()):
            if host in hosts:
                del self._runs_on[node]
                self._ends.append(AgentExited(node, host, None, None, text))

    @property
    def has_started(self) -> bool:
        """Whether the command was started on any node."""
        return bool(self._latest)

    @property
    def num_ended(self) -> int:
        """On how many nodes the last run of the command has ended."""
        return len(self._latest) - len(self._runs_on)

    def new_starts(self) -> list[AgentStarted]:
        """Return the starts that were read since the last call."""
        found, self._starts = self._starts, []
        return found

    def new_ends(self) -> list[AgentExited]:
        """Return the ends that were read since the last call."""
        found, self._ends = self._ends, []
        return found

    def log(self, node: int | None, max_bytes: int) -> str:
        """Return the end of the output of a node's command, or of the engine; empty if there is none."""
        name = ENGINE_LOG if node is None else f"node-{node}-{self._latest.get(node, 0)}.log"
        try:
            return _end_of(self.folder / name, max_bytes).strip()
        except OSError:
            return ""

    def open_engine_log(self) -> int:
        """Return a descriptor of the file for the engine's output."""
        path = self.folder / ENGINE_LOG
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def copy_logs(self, folder: Path) -> None:
        """Copy the logs of the engine and of the nodes to a folder."""
        try:
            make_folder(folder)
            for path in sorted(self.folder.glob("*.log")):
                shutil.copyfile(path, folder / path.name, follow_symlinks=False)
        except OSError as err:  # a shutdown does not fail because of logs
            log.warning("jupyter_dist: logs cannot be copied to %s: %s", folder, err)

    def remove(self) -> None:
        """Remove the folder, and its parent if that had only jobs. Idempotent."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _names(self) -> set[str]:
        with contextlib.suppress(OSError):
            return {name for name in os.listdir(self.folder) if _NAME.match(name)}
        return set()

    def _ended(self, node: int, run: int, words: list[str]) -> AgentExited:
        if words[:1] == [LOST]:
            return AgentExited(node, words[1] if len(words) > 1 else "?", None, None, " ".join(words[2:]))
        try:
            code = int(words[0])
        except (IndexError, ValueError):
            code = 1
        host = words[1] if len(words) > 1 else "?"
        text = ""
        with contextlib.suppress(OSError):
            text = _end_of(self.folder / f"node-{node}-{run}.log", MAX_TEXT_BYTES).strip()
        signum = code - _SIGNAL_EXIT
        if signum in signal.valid_signals():  # as shells report it
            return AgentExited(node, host, None, signum, text)
        return AgentExited(node, host, code, None, text)


def _end_of(path: Path, max_bytes: int) -> str:
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - max_bytes))
        return file.read(max_bytes).decode("utf-8", "replace")
