"""The group of this kernel, found again by its name after a kernel restart."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from jupyter_dist.client import Client, Execution, Group, JupyterDistError, Result
from jupyter_dist.client.bundles.bundle import rank_label
from jupyter_dist.client.bundles.outputs import in_notebook
from jupyter_dist.client.displays.changing import Changing
from jupyter_dist.client.displays.live import show_live
from jupyter_dist.protocol.operations import ENDED_NOTES
from jupyter_dist.protocol.ranks import RankSet, in_words
from jupyter_dist.protocol.states import GONE_GROUP_STATES
from jupyter_dist.protocol.wire.specs import MAX_GRACE_SECONDS

from .failures import CellInterrupted

MAX_NAME = 30
# How long a group outlives a kernel that no Jupyter server started: enough to restart the kernel.
GRACE_SECONDS = 60
GRACE_VARIABLE = "JUPYTER_DIST_GRACE_SECONDS"
# Fields of a start (docs/api.md): the option, and how a running group describes it.
COMPARED = {  # with a running group; other options matter to its start alone
    "num_ranks": ("-n", "with {num_ranks} ranks"),
    "devices": ("-g", "on {place}"),
    "backend": ("--backend", "with backend {backend}"),
    "accelerator": ("--accelerator", "on {place}"),
    "launcher": ("--launcher", "with the launcher {launcher}"),
    "num_nodes": ("--num-nodes", "on {num_nodes} nodes"),
    "ranks_per_node": ("--ranks-per-node", "on nodes with {on_nodes}"),
}


class Follower(Protocol):
    """What magics keep on ranks beside variables."""

    def before_restart(self, group: Group) -> None:
        """Called before all ranks get new processes."""

    def new_ranks(self, ranks: str) -> None:
        """Called when these ranks are new processes without variables."""

    def forgotten(self) -> None:
        """Called when the group was shut down."""


Show = bool | Callable[[Result], None]  # the output of a cell: shown, not shown, or passed to a function


class SessionHost(Protocol):
    """The kernel that a session belongs to: IPython with our magics loaded, or the kernel *Ranks*."""

    @property
    def notebook(self) -> str | None:
        """Return the path of the kernel's notebook, if it is known."""

    @property
    def wanted(self) -> str | None:
        """Return the name of the group on which cells run, if the kernel's environment has one."""

    def find(self, living: dict[str, Group], name: str | None) -> Group | None:
        """Return the group on which cells run, of all running groups; `name` is the wanted one's, or the last one's."""

    def kept(self) -> Group | None:
        """Return the group that a start without a name attaches to if it fits; None: the notebook's."""

    def attached(self, group: Group) -> None:
        """Handle the attachment of the user to a group, also by a start."""

    def submit(self, group: Group, code: str, ranks: str, fields: dict[str, Any], show: Show) -> Execution:
        """Submit a cell, and return its execution."""

    def show(self, execution: Execution, show: Show, changing: Changing) -> Result:
        """Show the output of a cell until the cell ends, and return its result."""


class IPythonHost:
    """A kernel of IPython with our magics: cells run on this notebook's group, and IPython shows their output."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    @property
    def notebook(self) -> str | None:
        """Return the path of the kernel's notebook, if it is known."""
        return notebook_path(self._shell)

    @property
    def wanted(self) -> str | None:
        """Return None: a notebook's group is found by the notebook's name."""
        return None

    def find(self, living: dict[str, Group], name: str | None) -> Group | None:
        """Return the group with that name; without a name, this notebook's."""
        return named(living, name, self.notebook)

    def kept(self) -> Group | None:
        """Return None: a start without a name attaches to the notebook's group."""
        return None

    def attached(self, group: Group) -> None:
        """Do nothing: magics print their own results."""

    def submit(self, group: Group, code: str, ranks: str, fields: dict[str, Any], show: Show) -> Execution:
        """Submit a cell of this notebook, with the number beside it."""
        if not fields.get("silent"):
            fields = {"execution_count": self._shell.displayhook.prompt_count, **fields}
        return group.begin(code, ranks, notebook=self.notebook, stop_on_error=False, **fields)

    def show(self, execution: Execution, show: Show, changing: Changing) -> Result:
        """Show the output of a cell in the running cell of IPython until it ends."""
        return show_in_ipython(execution, show, changing)


class Session:
    """A connection that is made on first use, and again after its server is gone."""

    def __init__(self, host: SessionHost) -> None:
        self._host = host
        self._client: Client | None = None
        self._group: Group | None = None
        self.followers: list[Follower] = []
        self.run_options: dict[str, Any] = {}  # of each cell that has no other value
        self.changing = Changing()

    @property
    def client(self) -> Client:
        """Return the client; connect if needed."""
        if self._client is not None:
            try:
                self._client.ask("GET")
            except JupyterDistError:
                self.close()
        if self._client is None:
            self._client = Client.connect()
        return self._client

    @property
    def known(self) -> Group | None:
        """Return the group that was last used, without checking that it still exists."""
        return self._group

    def group(self) -> Group:
        """Return the group of this kernel, or of an earlier kernel of the same notebook.

        Raises:
            JupyterDistError: `unknown_group`, if there is none.
        """
        if self._group is not None:
            try:
                self._group.status()
                return self._group
            except JupyterDistError as err:
                if err.code not in ("server_gone", "unknown_group"):
                    raise
                return self._found(self._group.name)
        return self._found()

    def init(self, name: str | None, fields: dict[str, Any], num_ranks: int | None = None) -> tuple[Group, bool]:
        """Attach to the group with that name, or this notebook's, or start it; return whether it was started.

        A running group must match `fields`; `num_ranks` is the default for a start without fields.
        """
        kept = None if name else self._host.kept()
        if kept is not None and self.is_same(kept, fields):
            name = kept.name
        group, started = self._attach_or_start(name, fields, num_ranks)
        self._host.attached(group)
        return group, started

    def _attach_or_start(self, name: str | None, fields: dict[str, Any], num_ranks: int | None) -> tuple[Group, bool]:
        living = self._living()
        group = named(living, name, self._host.notebook)
        if group is not None:
            self._check_same(group, fields)
            self._group = group
            self._own(group)
            return group, False
        wanted = name or _free_name(living, self._host.notebook)
        defaults: dict[str, Any] = {"python": sys.executable, "cwd": os.getcwd()}
        if num_ranks is not None and not fields.keys() & {
            "preset",
            "devices",
            "launcher",
            "num_nodes",
            "ranks_per_node",
        }:
            defaults["num_ranks"] = num_ranks
        grace_seconds = self._grace_seconds()
        self._group = self.client.start(wanted, wait=False, grace_seconds=grace_seconds, **{**defaults, **fields})
        if not self._group.model.get("join"):  # else its machines come when the user starts them
            self._group.ready(show=print)
        return self._group, True

    def run(self, code: str, ranks: str = "all", *, show: Show = True, **fields: Any) -> Result:
        """Run a cell and stream its output; `fields` of RunRequest (docs/reference/http.md).

        Raises:
            RankError: if a rank failed. KeyboardInterrupt: if Ctrl-C has stopped the ranks.
        """
        if not fields.get("silent"):
            fields = {**self.run_options, **fields}
        # One request in the usual case: the answer reports problems of the group.
        group = self._group or self.group()
        try:
            execution = self._host.submit(group, code, ranks, fields, show)
        except JupyterDistError as err:
            if err.code not in ("server_gone", "unknown_group"):
                raise
            execution = self._host.submit(self.group(), code, ranks, fields, show)
        return self._host.show(execution, show, self.changing).raise_for_error()

    def keep(self, **options: Any) -> None:
        """Run cells with these options from now on; a cell may have another value. False: without."""
        self.run_options = {name: value for name, value in {**self.run_options, **options}.items() if value}

    def forget(self) -> None:
        """Drop the group after it was shut down."""
        self._group = None
        for follower in self.followers:
            follower.forgotten()

    def close(self) -> None:
        """Close the connection; the group keeps running. Idempotent."""
        if self._client is not None:
            self._client.close()
        self._client = self._group = None

    def _living(self) -> dict[str, Group]:
        groups = self.client.groups()
        return {group.name: group for group in groups if group.model["state"] not in GONE_GROUP_STATES}

    def _found(self, name: str | None = None) -> Group:
        living, name = self._living(), name or self._host.wanted
        self._group = self._host.find(living, name)
        if self._group is not None:
            self._own(self._group)
            return self._group
        others = f" Running: {', '.join(living)}." if living else ""
        message = f"Group '{name}' is gone." if name else "This notebook has no group."
        hint = f"Start one: %dist_init -n 2; or attach to one: %dist_init --name NAME.{others}"
        raise JupyterDistError("unknown_group", message, hint)

    def _grace_seconds(self) -> float | None:
        """Return how long a new group outlives this kernel; None: it does not end with it.

        A kernel that a Jupyter server started may be restarted or closed, and its group is still shown there.
        """
        if self.client.is_own:
            return None
        return grace_setting()

    def _own(self, group: Group) -> None:
        """Have this notebook's group live as long as this kernel, if it ends with kernels."""
        if group.model.get("ends_with"):
            seconds = grace_setting()
            group.own(MAX_GRACE_SECONDS if seconds is None else seconds)

    def is_same(self, group: Group, fields: dict[str, Any]) -> bool:
        """Whether a start with these fields would give a group such as this running one."""
        try:
            self._check_same(group, fields)
        except JupyterDistError:
            return False
        return True

    def _check_same(self, group: Group, fields: dict[str, Any]) -> None:
        nodes = group.model.get("nodes") or ()
        counts = [len(RankSet.from_text(node["ranks"])) for node in nodes] or [group.world_size]
        shape = {"num_ranks": group.world_size, "num_nodes": len(counts), "ranks_per_node": counts}
        has = {"launcher": "local", **group.model, **shape, "on_nodes": in_words(counts)}
        has["place"] = "CPU" if has["accelerator"] == "cpu" else f"the devices {has['devices']}"
        for field, wanted in fields.items():
            if field not in COMPARED:
                continue
            if field == "ranks_per_node" and isinstance(wanted, int):
                wanted = [wanted] * len(counts)  # noqa: PLW2901 - its long form
            if wanted in ("auto", has[field]) or (wanted == "all" and has["devices"]):
                continue
            option, what = COMPARED[field]
            message = f"Group '{group.name}' is already running {what.format(**has)}."
            hint = f"Omit {option} to attach to it, or shut it down first: %dist_shutdown."
            raise JupyterDistError("name_taken", message, hint)


def named(living: dict[str, Group], name: str | None, notebook: str | None) -> Group | None:
    """Return the group with that name; without a name, this notebook's."""
    if name:
        return living.get(name)
    names, folder = group_names(notebook), _folder(notebook)
    found = (living[own] for own in names if own in living)
    return next((group for group in found if group.name == names[-1] or group.model["cwd"] == folder), None)


def _free_name(living: dict[str, Group], notebook: str | None) -> str:
    """Return a name for a new group of this notebook, by which `named` finds it whatever folder the kernel is in."""
    names = group_names(notebook)
    if os.path.realpath(os.getcwd()) != _folder(notebook):
        return names[-1]
    return next(name for name in names if name not in living)


def _folder(notebook: str | None) -> str:
    """Return the folder of the notebook, in which its kernel starts; `%cd` changes the kernel's."""
    is_known = notebook is not None and os.path.isabs(notebook)
    return os.path.realpath(os.path.dirname(notebook) if notebook and is_known else os.getcwd())


def group_names(notebook: str | None) -> list[str]:
    """Return two names for this notebook's group; no other notebook has the second.

    The second is used where a notebook in another folder has the first, or the kernel is not in the notebook's folder.
    """
    if notebook is None:
        return [f"kernel-{os.getpid()}"]
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(notebook).stem).strip("-._")[:MAX_NAME] or "notebook"
    return [stem, f"{stem}-{hashlib.sha256(notebook.encode()).hexdigest()[:6]}"]


def show_in_ipython(execution: Execution, show: Show, changing: Changing) -> Result:
    """Show the output of a cell by IPython's displays until it ends. Raises CellInterrupted after Ctrl-C."""
    display = show_live() if show is True else show
    try:
        result = execution.wait(display)
    except KeyboardInterrupt:
        raise _interrupted(execution.peek()) from None
    if display:
        changing.update()
        if in_notebook():
            changing.keep(execution, result, display)
    for note in ENDED_NOTES:
        if (sentence := note(result.execution)) is not None:
            print(sentence)
    return result


def _interrupted(result: Result) -> CellInterrupted:
    """Return the exception for a cell that Ctrl-C stopped; a second Ctrl-C ends the wait."""
    if not result.done:
        return CellInterrupted(
            "the ranks were interrupted but are still running; see %dist_status, or use %dist_restart"
        )
    lost = [status["ranks"] for status in result.execution["statuses"] if status["status"] == "lost"]
    if lost:
        return CellInterrupted(f"{rank_label(','.join(lost))} died; the other ranks keep their variables")
    return CellInterrupted("the ranks were interrupted; they keep their variables")


def grace_setting() -> float | None:
    """Return GRACE_VARIABLE: seconds, or None for `keep`. Raises JupyterDistError for anything else."""
    text = os.environ.get(GRACE_VARIABLE, "").strip() or str(GRACE_SECONDS)
    if text == "keep":
        return None
    try:
        seconds = float(text)
        if not 0 <= seconds <= MAX_GRACE_SECONDS:
            raise ValueError(text)
    except ValueError:
        message = f"{GRACE_VARIABLE} is '{text[:40]}'."
        hint = f"Use a number of seconds up to {MAX_GRACE_SECONDS}, or 'keep'."
        raise JupyterDistError("bad_request", message, hint) from None
    return seconds


def notebook_path(shell: Any) -> str | None:
    """Return the notebook of this kernel, if the server or VS Code sets it."""
    return os.environ.get("JPY_SESSION_NAME") or shell.user_ns.get("__vsc_ipynb_file__")
