"""The group of a kernel *Ranks*: found from the environment, the kernel's last run or the notebook, else started."""

from __future__ import annotations

import contextlib
import json
import os
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from jupyter_core.paths import jupyter_runtime_dir

from jupyter_dist.client import Execution, Group, JupyterDistError, Result
from jupyter_dist.client.blocking.report import ending_text
from jupyter_dist.client.bundles.outputs import BundleOutputs, Emit
from jupyter_dist.client.displays.changing import Changing
from jupyter_dist.magics.session import Session, Show, named, show_in_ipython
from jupyter_dist.system.files.jsonfile import read_json
from jupyter_dist.system.files.private import make_folder

from .outputs import PlainOutputs

GROUP_VARIABLE = "JUPYTER_DIST_GROUP"
RANKS_VARIABLE = "JUPYTER_DIST_RANKS"
DEFAULT_RANKS = 2


class RunningCell(Protocol):
    """The cell for which something is run."""

    fields: dict[str, Any]  # of its request
    show: PlainOutputs | BundleOutputs | None
    emit: Emit

    def begun(self, execution: Execution) -> None:
        """Note the execution that runs now."""

    def follow(self, execution: Execution) -> Result:
        """Show an execution until it ends."""


# One per thread that runs a cell. The magics, and with them the session and this host, are the kernel's, not a cell's:
# the thread of a cell that was given up may still run a magic beside the next cell, and only a thread knows its cell.
CELL: ContextVar[RunningCell | None] = ContextVar("CELL", default=None)


class KernelHost:
    """The host of the session of a kernel *Ranks*: starts a group if there is none, and shows cells by the kernel."""

    def __init__(self, connection_file: str) -> None:
        self.session = Session(self)
        self._memory = RestartFile(connection_file)
        self._told: str | None = None  # the group whose name was shown

    def ready(self) -> tuple[Group, str]:
        """Return the group, which is started if there is none, and a sentence if it is new to the user."""
        sentence = ""
        try:
            group = self.session.group()
        except JupyterDistError as err:
            if err.code != "unknown_group":
                raise
            group, started = self.session.init(self.wanted, {}, wanted_ranks())
            if started:
                self._told, sentence = group.id, _started(group)
        self.remember()
        return group, sentence or self._sentence(group)

    def remember(self) -> None:
        """Note the group for the kernel's next process, and that the user knows it."""
        group = self.session.known
        if group is not None and group.id != self._memory.group:
            self._memory.write(group.id)

    def _sentence(self, group: Group) -> str:
        """Return the message that the first cell shows about a group that already exists."""
        told = self._memory.take_message()
        if self._told == group.id:
            return told
        self._told = group.id
        return told or f"Cells run on group '{group.name}' ({group.world_size} ranks), which keeps its variables.\n"

    @property
    def notebook(self) -> str | None:
        """Return the path of the kernel's notebook, if it is known."""
        return os.environ.get("JPY_SESSION_NAME") or None

    @property
    def wanted(self) -> str | None:
        """Return the name or the id in GROUP_VARIABLE."""
        return os.environ.get(GROUP_VARIABLE) or None

    def kept(self) -> Group | None:
        """Return the group that cells would run on: a start without a name keeps it, if it fits."""
        return self.group_if_any()

    def attached(self, group: Group) -> None:
        """Remember the group; the magic has shown its name."""
        self._told = group.id
        self.remember()

    def restart(self) -> None:
        """Have the ranks restarted, without waiting for the new ones; the kernel's next process reports the restart."""
        if (group := self.group_if_any()) is None:
            return
        try:
            group.restart(wait=False)
            self._memory.write(group.id, f"Group '{group.name}': {group.world_size} new ranks.\n")
        except JupyterDistError as err:
            self._memory.write(group.id, f"The ranks of '{group.name}' were not restarted: {err}\n")

    def end(self, *, restart: bool) -> None:
        """Forget the group at the end of the kernel: it keeps running."""
        if not restart:
            self._memory.forget()
        with contextlib.suppress(JupyterDistError):
            self.session.close()

    def submit(self, group: Group, code: str, ranks: str, fields: dict[str, Any], show: Show) -> Execution:
        """Submit code for the running cell, which can interrupt it; shown code has the fields of the cell's request."""
        cell = CELL.get()
        fields = {**cell.fields, **fields} if show is True and cell is not None else dict(fields)
        fields = {"notebook": self.notebook, "ask": fields.pop("allow_stdin", False), **fields}
        execution = group.begin(code, ranks, stop_on_error=False, **fields)
        if cell is not None:
            cell.begun(execution)
        return execution

    def show(self, execution: Execution, show: Show, changing: Changing) -> Result:
        """Show a cell by the kernel, unless `show` is False or a function, and return its result."""
        cell = CELL.get()
        if show is not True or cell is None:
            return show_in_ipython(execution, show, changing)
        result = cell.follow(execution)
        changing.update()
        if cell.show is not None:
            changing.keep(execution, result, partial(_show_again, cell.show))
        return result

    def group_if_any(self) -> Group | None:
        """Return the group that was last used, or that a cell would use; None if one would have to be started."""
        with contextlib.suppress(JupyterDistError):
            return self.session.known or self.session.group()
        return None

    def find(self, living: dict[str, Group], name: str | None) -> Group | None:
        """Return the group: the variable's, the kernel's last one, the notebook's, or the only one without an owner."""
        by_id = {group.id: group for group in living.values()}
        found = living.get(name or "") or by_id.get(name or "")
        if found is None and not self.wanted:
            found = by_id.get(self._memory.group) or named(living, None, self.notebook) or _only(living)
        return found


def _show_again(outputs: PlainOutputs | BundleOutputs, result: Result) -> None:
    """Update the output of an earlier cell, in messages of the running one: clients take no others."""
    if (cell := CELL.get()) is not None:
        outputs.emit = cell.emit
        outputs(result)


class RestartFile:
    """A file for the next process of this kernel, named after the connection file: the group and a message.

    Clients restart a kernel by ending its process and starting another with the same connection file.
    """

    def __init__(self, connection_file: str) -> None:
        folder = Path(jupyter_runtime_dir(), "jupyter_dist_kernels")
        self._connection_file = str(Path(connection_file).absolute())
        self._path = folder / f"{Path(connection_file).stem}.json"
        _prune(folder)
        self.group, self._message = self._read()

    def write(self, group: str, message: str = "") -> None:
        """Store the group, and the message that the next process shows."""
        self.group = group
        with contextlib.suppress(OSError):  # the next process looks for a group as the first did
            make_folder(self._path.parent)
            noted = {"connection_file": self._connection_file, "group": group, "message": message}
            self._path.write_text(json.dumps(noted))

    def take_message(self) -> str:
        """Return the message of the previous process, and remove it from the file."""
        message, self._message = self._message, ""
        if message:
            self.write(self.group)
        return message

    def forget(self) -> None:
        """Remove the file."""
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _read(self) -> tuple[str, str]:
        try:
            found = read_json(self._path)
            return str(found["group"]), str(found["message"])
        except (OSError, ValueError, KeyError, TypeError):
            return "", ""


def wanted_ranks() -> int:
    """Return how many ranks a new group gets. Raises JupyterDistError if the variable is not a number."""
    text = os.environ.get(RANKS_VARIABLE, "").strip() or str(DEFAULT_RANKS)
    if not text.isdigit():
        message = f"{RANKS_VARIABLE} is '{text[:40]}'."
        raise JupyterDistError("bad_request", message, "Set it to a number of ranks, such as 4.")
    return int(text)


def _only(living: dict[str, Group]) -> Group | None:
    """Return the only running group that does not end with another process, such as another notebook's kernel."""
    free = [group for group in living.values() if not group.model.get("ends_with")]
    return free[0] if len(free) == 1 else None


def _started(group: Group) -> str:
    ready = f"{group.model['ready_seconds']:.1f} s" if group.model["ready_seconds"] is not None else "its start"
    ending = ending_text(group.model, is_private=False)
    return f"Group '{group.name}' was started: {group.world_size} ranks, ready after {ready}. {ending}\n"


def _prune(folder: Path) -> None:
    """Remove the files of kernels that were killed and not started again: their connection files are gone."""
    for path in folder.glob("*.json"):
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            if not Path(read_json(path)["connection_file"]).exists():
                path.unlink()
