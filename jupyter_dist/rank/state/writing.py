"""Writes the names of cells, with all that is below them: run in the main thread of a rank, while no cell runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.rank.collectives.torch_compat import devices_in_use
from jupyter_dist.rank.guard.own import os, time
from jupyter_dist.system.files.owned import OwnFolder
from jupyter_dist.system.files.valuefiles import rank_file

from . import reasons
from .process import beside, environment, groups, names, randomness, settings
from .process.modules import library, sources, values
from .store import manifest
from .store.blobs import BlobWriter
from .store.chunks import ChunkStore

if TYPE_CHECKING:
    from .graph.covariables import CovariableGraph, Root
    from .graph.pickling import StreamSpace

CALLS_USER_CODE = True
INTERRUPTIBLE = True


@dataclass(frozen=True)
class WriteOptions:
    """How a rank writes.

    Attributes:
        rank: its number.
        world_size: of its group.
        durable: Wait until the disk has the files.
        progress: called with the bytes that are written, and all that are to be; by any thread.
        takes: Whether a name, a result of a cell or the random states are written; by default all are.
        judges_above: Whether folders above may be no other user's: the agent has just made the folder of a copy.
    """

    rank: int
    world_size: int
    durable: bool = True
    takes: Callable[[Root], bool] | None = None
    progress: Callable[[int, int], None] | None = None
    judges_above: bool = True


@dataclass
class WrittenNames:
    """What a rank has written, or would write."""

    rank: int
    names: list[str]
    total_bytes: int
    skipped: list[dict[str, Any]]
    notes: list[dict[str, Any]]
    written_bytes: int = 0
    host_bytes: int = 0  # in the memory of the machine; the rest is on devices
    seconds: float = 0.0
    file: str = ""
    file_hash: str = ""
    versions: dict[str, str] = field(default_factory=manifest.versions)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for the agent."""
        return {
            "rank": self.rank,
            "num_names": len(self.names),
            "total_bytes": self.total_bytes,
            "written_bytes": self.written_bytes,
            "host_bytes": self.host_bytes,
            "seconds": round(self.seconds, 3),
            "file": self.file,
            "file_hash": self.file_hash,
            "versions": self.versions,
            "skipped": self.skipped,
            "notes": self.notes,
        }


class NamespaceSnapshot:
    """What a rank holds now: the graph of its co-variables, and what is beside them."""

    def __init__(self, shell: Any, takes: Callable[[Root], bool] | None = None, *, joins_plain: bool = False) -> None:
        namespace = shell.user_ns
        self.inputs = names.inputs(namespace)
        self.values: dict[Root, Any] = {
            ("name", name): value for name, value in names.variables(namespace, shell.user_ns_hidden).items()
        }
        of_library = library.named_containers(namespace)
        for root, value in self.values.items():
            if id(value) in of_library:
                self.values[root] = library.NamedContainer(*of_library[id(value)])
        self.values.update({("result", number): value for number, value in names.results(namespace).items()})
        self.values["process", "random"] = randomness.take()
        self.values["process", "settings"] = settings.take()
        taken = beside.take(shell)
        self.values.update({("process", key): value for key, value in taken.items()})
        self.modules = [name for name in beside.of_kind("module", taken) if ":" not in name]
        if takes is not None:
            self.values = {root: value for root, value in self.values.items() if takes(root)}
        self.space, self.graph = _graph(self.values, shell, joins_plain)
        self.memories = self.space.memory.memories()

    @cached_property
    def skipped(self) -> list[dict[str, Any]]:
        """Return the names that cannot be written, with the reasons."""
        found = []
        for (kind, key), error in self.graph.failed.items():
            if kind in ("name", "result"):
                name = key if kind == "name" else f"Out[{key}]"
                cell = names.cell_of(key, self.inputs) if kind == "name" else key
                type_name = reasons.type_name(self.values[kind, key])
                part = self._failing_part(name, kind, self.values[kind, key], error)
                reason = reasons.of(error)
                found.append({"name": name, "part": part, "type": type_name, "reason": reason, "cell": cell})
        return found

    def _failing_part(self, name: str, kind: str, value: Any, error: BaseException) -> str:
        if kind != "name" or isinstance(error, RecursionError):
            return name
        from . import failing
        from .graph import pickling

        return failing.path_of(name, value, pickling.make_space(self.space.namespace, self.space.main_module))

    def notes(self) -> list[dict[str, Any]]:
        """Return the parts of written names, and of what is beside them, that are not written."""
        found = []
        for one in self.graph.covariables:
            titles = ", ".join(one.of("name")) or ", ".join(f"Out[{number}]" for number in one.of("result"))
            titles = titles or ", ".join(map(beside.title_of, one.of("process")))
            found += [{"name": titles, "reason": note} for note in sorted(one.stream.notes)]
        lost = [(key, error) for (kind, key), error in self.graph.failed.items() if kind == "process"]
        return [
            *found,
            *({"name": beside.title_of(key), "reason": f"is not saved: {reasons.of(err)}"} for key, err in lost),
        ]

    def result(self, rank: int) -> WrittenNames:
        """Return the answer, as far as it is known before anything is written."""
        written = [name for one in self.graph.covariables for name in one.of("name")]
        streams = sum(one.stream.num_bytes for one in self.graph.covariables)
        total = streams + sum(self.memories[number].num_bytes for number in self.used_memories())
        return WrittenNames(rank, sorted(written), total, self.skipped, self.notes())

    def used_memories(self) -> list[int]:
        """Return the numbers of the memories that the co-variables name."""
        blocks = {block for one in self.graph.covariables for block in one.stream.blocks}
        return [number for number, memory in enumerate(self.memories) if not blocks.isdisjoint(memory.blocks)]


def _graph(values: dict[Root, Any], shell: Any, joins_plain: bool) -> tuple[StreamSpace, CovariableGraph]:
    try:
        from .graph import covariables, pickling
    except ImportError as err:
        message = say("The Python of the ranks lacks the package cloudpickle, which writes functions and classes.")
        raise JupyterDistError("cannot_save", message, say("Run 'pip install cloudpickle' there.")) from err
    space = pickling.make_space(shell.user_ns, shell.user_module)
    return space, covariables.find(values, space, joins_plain=joins_plain)


def preview(shell: Any, rank: int = 0) -> WrittenNames:
    """Return the result of `write_namespace` without writing anything."""
    return NamespaceSnapshot(shell, joins_plain=True).result(rank)


def write_namespace(shell: Any, folder: str, into: str, options: WriteOptions) -> WrittenNames:
    """Write all names of cells.

    Args:
        shell: IPython's shell of this rank.
        folder: in which chunks are, which others may share.
        into: the folder in which this rank writes its manifest.
        options: how.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
        JupyterDistError: `cannot_save`, if a package is missing.
    """
    start = time.monotonic()
    snapshot = NamespaceSnapshot(shell, options.takes, joins_plain=True)
    store = ChunkStore(OwnFolder(Path(folder), judges_above=options.judges_above))
    blobs = BlobWriter(store)
    content = _content(snapshot, shell, blobs, options)
    _wait_for_devices()
    blobs.write(options.progress, options.rank / options.world_size)
    content["chunks"] = sorted(blobs.written.names)
    content["total_bytes"], content["written_bytes"] = blobs.num_bytes, blobs.written.num_bytes
    result = snapshot.result(options.rank)
    result.total_bytes, result.written_bytes = blobs.num_bytes, blobs.written.num_bytes
    result.host_bytes = sum(one["num_bytes"] for one in content["memories"] if one["device"] == "cpu")
    if options.durable:
        store.make_durable()
    result.file = rank_file(options.rank)
    result.file_hash = manifest.write(os.path.join(into, result.file), content, options.durable)
    result.seconds = time.monotonic() - start
    return result


def _wait_for_devices() -> None:
    for device in devices_in_use():
        getattr(torch, device).synchronize()


def _content(snapshot: NamespaceSnapshot, shell: Any, blobs: BlobWriter, options: WriteOptions) -> manifest.Manifest:
    """Return the manifest; the pieces of contents get their names when they are written."""
    used = snapshot.used_memories()
    blocks: dict[str, Any] = {}
    memories = []
    for place, number in enumerate(used):
        memory = snapshot.memories[number]
        pieces = blobs.add(memory.num_bytes, memory.read, None if memory.device == "cpu" else memory.name)
        memories.append({**memory.to_dict(), "pieces": pieces})
        for block in memory.blocks:
            found = snapshot.space.memory.blocks[block]
            blocks[str(block)] = [place, found.start - memory.start, found.num_bytes]
    numbers = {id(one): number for number, one in enumerate(snapshot.graph.covariables)}
    streams = [
        {
            "names": one.of("name"),
            "results": one.of("result"),
            "definitions": one.of("definition"),
            "process": one.of("process"),
            "needs": sorted({numbers[id(other)] for other in one.needs}),
            "pieces": blobs.add_parts(one.stream.parts),
        }
        for one in snapshot.graph.covariables
    ]
    return {
        "format": manifest.FORMAT,
        "rank": options.rank,
        "world_size": options.world_size,
        "versions": manifest.versions(),
        "byteorder": sys.byteorder,
        "device": names.device_of(shell),
        "blocks": blocks,
        "memories": memories,
        "covariables": streams,
        "environment": environment.take(),
        "process_groups": groups.plans(),
        "submodules": names.submodules(snapshot.inputs),
        "modules": values.records(snapshot.modules),
        "inputs": snapshot.inputs,
        "sources": sources.take(snapshot.space.definitions.objects),
        "execution_count": int(shell.execution_count),
        "skipped": snapshot.skipped,
        "notes": snapshot.notes(),
    }
