"""Compares the variables of ranks by hashes, and copies equal ones to ranks that a resize adds.

A rank answers with a hash of each co-variable: of its stream, of the definitions that it names, and of the memory.
Equal hashes mean equal values; what cannot be hashed counts as different.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from jupyter_dist.rank.collectives.revival import followers
from jupyter_dist.rank.guard.own import os

from . import saving
from .graph import covariables, pickling
from .graph.covariables import Root
from .graph.memory import Memory
from .restoring import RestoreOptions, load
from .saving import SaveOptions
from .store.chunks import CHUNK_BYTES
from .store.hashing import Hasher

CALLS_USER_CODE = True
INTERRUPTIBLE = True

Place = tuple[int, int]  # a rank, and how many there are


def carry_out(shell: Any, place: Place, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request of the agent: `signatures`, `out` or `in`."""
    if asked["do"] == "signatures":
        with followers.as_one(place):
            return signatures(shell)
    if asked["do"] == "out":
        return copy_out(shell, asked["folder"], asked["keys"])
    found = copy_in(shell, asked["folder"], asked["file"], place)
    followers.follow((0, place[1]), place)
    return found


def signatures(shell: Any) -> dict[str, Any]:
    """Return a hash for each co-variable, and the names that cannot be copied, with the reasons."""
    snapshot = saving.NamespaceSnapshot(shell)
    hashes = _MemoryHashes()
    found = []
    for one in snapshot.graph.covariables:
        roots = [root for root in one.roots if root[0] != "definition"]
        if roots:
            found.append({"keys": sorted(map(_key, roots)), "hash": _signature(roots, snapshot, shell, hashes)})
    return {"covariables": found, "skipped": snapshot.skipped}


def copy_out(shell: Any, folder: str, keys: Sequence[str]) -> dict[str, Any]:
    """Write these names, and the definitions below them, into a folder, as the save of a single rank."""
    wanted = frozenset(keys)
    options = SaveOptions(0, 1, durable=False, takes=lambda root: _key(root) in wanted)
    return saving.save_namespace(shell, folder, folder, options).to_dict()


def copy_in(shell: Any, folder: str, file: str, place: Place) -> dict[str, Any]:
    """Take the names that another rank has written; return the names, and what could not be read."""
    return load(shell, folder, os.path.join(folder, file), RestoreOptions(*place)).commit()


def _key(root: Root) -> str:
    """Return a name for a name, a result of a cell or the random states, the same on all ranks."""
    kind, key = root
    return str(key) if kind == "name" else f"Out[{key}]" if kind == "result" else f"({key})"


def _signature(roots: list[Root], snapshot: saving.NamespaceSnapshot, shell: Any, hashes: _MemoryHashes) -> str | None:
    """Return the hash of a co-variable, written alone: its numbers do not depend on what else a rank has."""
    space = pickling.make_space(shell.user_ns, shell.user_module)
    streams = [covariables.write_together(roots, snapshot.values, space)]
    number = 0
    while number < len(space.definitions.objects):  # grows meanwhile
        if space.definitions.parents[number] == number:
            streams.append(covariables.write_together([("definition", number)], snapshot.values, space))
        number += 1
    if any(stream.error is not None for stream in streams):
        return None
    digest = hashlib.blake2b(digest_size=16)
    for stream in streams:
        digest.update(str(stream.num_bytes).encode())
        for part in stream.parts:
            digest.update(part)
    for memory in space.memory.memories():
        place = (
            memory.device.partition(":")[0],
            memory.num_bytes,
            [number - memory.blocks[0] for number in memory.blocks],
        )
        digest.update(repr((place, hashes.of(memory))).encode())
    return digest.hexdigest()


class _MemoryHashes:
    """The hashes of memory, which co-variables share only in the form of views: each is read once."""

    def __init__(self) -> None:
        self._hasher = Hasher()
        self._known: dict[tuple[str, int, int], list[str]] = {}

    def of(self, memory: Memory) -> list[str]:
        """Return the hashes of the pieces of a memory."""
        place = (memory.device, memory.start, memory.num_bytes)
        if place not in self._known:
            starts = range(0, memory.num_bytes, CHUNK_BYTES)
            sizes = [min(CHUNK_BYTES, memory.num_bytes - start) for start in starts]
            parts = (memory.read(start, size) for start, size in zip(starts, sizes, strict=True))
            self._known[place] = [self._hasher.name_of(part) for part in parts]
        return self._known[place]
