"""Reads the files of a rank in two steps: all values are read beside the present names, and then replace them."""

from __future__ import annotations

import contextlib
import datetime
import importlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.system.files.owned import OwnFolder
from jupyter_dist.system.files.valuefiles import rank_file

from . import reasons
from .loading import Loader
from .process import beside, environment, groups, names, randomness, settings
from .process.modules import sources, values
from .process.modules.own import is_users_module
from .store import manifest
from .store.blobs import BlobReader
from .store.chunks import ChunkStore
from .store.manifest import Manifest

GROUP_SECONDS = 60.0  # how long ranks wait for each other to create a process group

CALLS_USER_CODE = True
INTERRUPTIBLE = True


@dataclass(frozen=True)
class ReadOptions:
    """How a rank reads.

    Attributes:
        rank: its number.
        world_size: of its group.
        removes_others: Whether names that are not in the files are removed.
        is_alone: Whether other ranks do not read at the same time; then no process groups can be created.
        progress: called with the bytes that were read, and all that are to be; by any thread.
        judges_above: Whether folders above may be no other user's: the agent has just made the folder of a copy.
    """

    rank: int
    world_size: int
    removes_others: bool = False
    is_alone: bool = False
    progress: Callable[[int, int], None] | None = None
    judges_above: bool = True


Content = dict[str, dict[Any, Any]]  # by kind of root and key


@dataclass(frozen=True)
class GivenNames:
    """What a rank has read, and its names have now.

    Attributes:
        names: that have their values of then.
        failed: what could not be read, with the reason.
        notes: sentences on what else is not as it was.
    """

    names: list[str]
    failed: list[reasons.Lacking]
    notes: list[str]


@dataclass
class LoadedNames:
    """What was read, before it replaces the present names. All that can fail has been done.

    Attributes:
        leave: Sets what was changed of the process to read it as it was.
    """

    shell: Any
    manifest: Manifest
    content: Content
    options: ReadOptions
    leave: Callable[[], None]
    failed: list[reasons.Lacking] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    puts: values.Puts = field(default_factory=list)  # the state of modules into its places

    @property
    def num_names(self) -> int:
        """How many names were read."""
        return len(self.content["name"])

    def commit(self) -> GivenNames:
        """Give the names the values that were read, and put back what is beside them. Does not raise."""
        namespace = self.shell.user_ns
        before = dict(namespace)  # until the end: finalizers of the user must not see half of it
        if self.options.removes_others:
            for name in names.variables(namespace, self.shell.user_ns_hidden):
                if name not in self.content["name"]:
                    del namespace[name]
        namespace.update(self.content["name"])
        self._put_back_results(namespace)
        sources.put_back(self.manifest.get("sources", {}).get("lines", {}), self.shell.compile)
        for put in self.puts:
            put()
        process = self.content["process"]
        notes = [*self.notes, *_other_versions(self.manifest), *settings.put_back(process.get("settings", {}))]
        if "modules" in self.manifest:  # else of 0.3, which wrote nothing of it
            notes += beside.put_back(self.shell, process)
        notes += randomness.put_back(process.get("random", {}))
        found = GivenNames(sorted(self.content["name"]), self.failed, notes)
        self._forget()
        before.clear()
        return found

    def discard(self) -> None:
        """Forget the values that were read, and leave the process as it was before."""
        self._forget()
        self.leave()

    def _forget(self) -> None:
        self.content = {kind: {} for kind in self.content}

    def _put_back_results(self, namespace: dict[str, Any]) -> None:
        results = namespace.get("_oh")
        if type(results) is dict:
            results.update(self.content["result"])
            namespace.update({f"_{number}": value for number, value in self.content["result"].items()})
            for name, number in zip(("_", "__", "___"), sorted(self.content["result"], reverse=True), strict=False):
                if namespace.get(name, "") is getattr(self.shell.displayhook, name, ""):  # no cell has set it
                    namespace[name] = self.content["result"][number]
                    setattr(self.shell.displayhook, name, namespace[name])
        kept = namespace.get("_ih")
        if isinstance(kept, list):
            kept[:] = self.manifest["inputs"]
        self.shell.execution_count = self.manifest["execution_count"]


def load(shell: Any, folder: str, file: str, options: ReadOptions) -> LoadedNames:
    """Read all that a rank has written. Nothing changes yet.

    Args:
        shell: IPython's shell of this rank.
        folder: in which chunks are.
        file: the manifest of the rank.
        options: how.

    Raises:
        JupyterDistError: `cannot_restore`; what is wrong, and what to do. `not_yours`.
    """
    own = OwnFolder(Path(folder), judges_above=options.judges_above)
    place = Path(file).relative_to(folder).parts
    saved = manifest.read(own, *place)
    _check_versions(saved)
    notes, leave = _enter(saved)
    try:
        _import([*saved["submodules"], *saved.get("modules", ())])
        if not options.is_alone:
            _create_groups(own, place, saved)
        content, failed = _read(shell, saved, BlobReader(ChunkStore(own)), options)
        puts, changed = values.prepare(saved.get("modules", {}), beside.of_kind("module", content["process"]))
    except BaseException:
        leave()
        raise
    return LoadedNames(shell, saved, content, options, leave, failed, [*notes, *changed], puts)


def _enter(saved: Manifest) -> tuple[list[str], Callable[[], None]]:
    """Be in the folder of then, where modules are found that it needs; return sentences, and how to leave."""
    modules, state, chosen = set(sys.modules), randomness.take(), settings.take()
    notes, leave_environment = environment.enter(saved["environment"])

    def leave() -> None:
        for name in sys.modules.keys() - modules:  # a module of this name may be another one in another folder
            if is_users_module(sys.modules[name]):
                del sys.modules[name]
        leave_environment()
        settings.put_back(chosen)
        randomness.put_back(state)

    return notes, leave


def _read(
    shell: Any, saved: Manifest, blobs: BlobReader, options: ReadOptions
) -> tuple[Content, list[reasons.Lacking]]:
    """Read all values; return them, and what could not be read."""
    content: Content = {"name": {}, "result": {}, "process": {}}
    failed: list[reasons.Lacking] = []
    loader = Loader(shell, names.device_of(shell), saved, blobs)
    try:
        loader.read_memories(options.progress)
        with warnings.catch_warnings(), _overlaid(shell.user_ns) as overlay:
            warnings.simplefilter("ignore")  # of torch, for what cells did before
            for one, loaded in loader.covariables():
                if isinstance(loaded, BaseException):
                    failed += [{"name": name, "reason": reasons.of(loaded)} for name in _titles(one)]
                    continue
                for kind, values in content.items():
                    values.update(loaded[kind])
                overlay(loaded["name"])
    finally:
        loader.close()
    return content, failed


def _import(modules: list[str]) -> None:
    """Import modules that are found through their packages (`a.b.c`), whose names alone do not import them."""
    for name in modules:
        with contextlib.suppress(Exception):  # of the module; what needs it is named when it is read
            importlib.import_module(name)


def _create_groups(own: OwnFolder, place: Sequence[str], saved: Manifest) -> None:
    """Create the process groups of all ranks that wrote, which all ranks do together, in one order."""
    files = map(rank_file, range(saved["world_size"]))
    of_ranks = (
        saved["process_groups"] if name == place[-1] else manifest.process_groups(own, *place[:-1], name)
        for name in files
    )
    plans = [plan for of_rank in of_ranks for plan in of_rank]
    groups.create_missing(plans, datetime.timedelta(seconds=GROUP_SECONDS))


def _titles(covariable: dict[str, Any]) -> list[str]:
    process = map(beside.title_of, covariable.get("process", ()))
    return [*covariable["names"], *(f"Out[{number}]" for number in covariable["results"]), *process]


def _check_versions(saved: Manifest) -> None:
    if saved["byteorder"] != sys.byteorder:
        orders = saved["byteorder"], sys.byteorder
        message = say("The save is of a machine with %1-endian numbers; this one is %2-endian.", *orders)
        raise JupyterDistError("cannot_restore", message, say("Restore it on a machine like that one."))


def _other_versions(saved: Manifest) -> list[str]:
    """Return a sentence if it is of other versions, which usually can be read."""
    here = manifest.versions()
    others = [
        f"{package} {version} (here {here[package]})"
        for package, version in saved["versions"].items()
        if package in here and here[package] != version
    ]
    return [f"It was saved with {', '.join(others)}."] if others else []


_MISSING = object()


@contextlib.contextmanager
def _overlaid(namespace: dict[str, Any]) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Let functions that are called while values are read find names that were read before; then put the names back."""
    before: dict[str, Any] = {}

    def overlay(values: dict[str, Any]) -> None:
        for name in values:
            before.setdefault(name, namespace.get(name, _MISSING))
        namespace.update(values)

    try:
        yield overlay
    finally:
        for name, value in before.items():
            if value is _MISSING:
                namespace.pop(name, None)
            else:
                namespace[name] = value
