"""Compares the variables of ranks by hashes, and copies equal ones to ranks that a resize adds.

A rank answers with a hash of each co-variable: of its stream, of the definitions that it names, and of the memory.
Equal hashes mean equal values; what cannot be hashed counts as different.
"""

from __future__ import annotations

import hashlib
import pickletools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from jupyter_dist.rank.collectives.revival import followers, shards
from jupyter_dist.rank.guard.own import os

from . import failing, writing
from .graph import covariables, pickling
from .graph.covariables import Root
from .graph.memory import Memory
from .parts import memory_files, read_parts, ways_to_dtensors
from .process import groups, names
from .reading import ReadOptions, load
from .store.chunks import CHUNK_BYTES
from .store.hashing import Hasher
from .writing import WriteOptions

CALLS_USER_CODE = True
INTERRUPTIBLE = True

# torch draws the names under which a module has the states of its wrappers, in each process.
_OF_PROCESS = re.compile(rb"__composable_api_state_key_[0-9a-f-]{36}")

Place = tuple[int, int]  # a rank, and how many there are


def carry_out(shell: Any, place: Place, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request of the agent: the name of one of the functions below, in `do`."""
    if asked["do"] == "signatures":
        with followers.as_one(place):
            return signatures(shell, place[1], takes_several=asked.get("takes_several", False))
    if asked["do"] == "parts":
        with followers.as_one(place):
            return {"parts": parts(shell, place[1], asked["paths"])}
    if asked["do"] == "out":
        return copy_out(shell, asked["folder"], asked["keys"])
    if asked["do"] == "in":
        with groups.written_by(asked["source"]):
            copied = copy_in(shell, asked["folder"], asked["file"], place)
        followers.follow((asked["source"], place[1]), place)
        return copied
    if asked["do"] in ("ways", "fill"):
        return (ways if asked["do"] == "ways" else fill)(shell, place[1], asked)
    if asked["do"] == "gather":
        new = None if asked["number"] is None else (asked["number"], asked["size"])
        _gathered[:] = shards.new_parts(_sharded(shell, asked["groups"], place[1]), place[1], new)
    elif asked["do"] == "take":
        shards.take(_gathered, place[1])
        _gathered.clear()
    elif asked["do"] == "spread":
        shards.take(shards.new_parts(_sharded(shell, asked["groups"], asked["size"]), asked["size"], place), place[1])
    return {"again": followers.made_for(asked["size"])} if asked["do"] == "again" else {"done": True}


_gathered: list[shards.NewPart] = []  # until the group has its new size


def signatures(shell: Any, world_size: int, *, takes_several: bool = False) -> dict[str, Any]:
    """Return a hash for each co-variable, and the names that cannot be copied, with the reasons."""
    snapshot = writing.NamespaceSnapshot(shell)
    hashes = _MemoryHashes()
    found, skipped = [], list(snapshot.skipped)
    for one in snapshot.graph.covariables:
        roots = [root for root in one.roots if root[0] != "definition"]
        if roots:
            view = shards.ShardView(world_size, takes_several=takes_several)
            digest = _signature(roots, snapshot.values, shell, hashes, view)
            is_sharded, keys = bool(view.tensors) or view.has_others, sorted(map(_key, roots))
            if view.has_others:
                digest = None
                skipped += [{"name": key, "part": key, "reason": shards.OVER_SEVERAL} for key in keys]
            found.append({"keys": keys, "hash": digest, "is_sharded": is_sharded})
    return {"covariables": found, "skipped": skipped}


def parts(shell: Any, world_size: int, paths: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return a hash of what these paths lead to, and of each part of it by the step to it; None: it cannot be compared.

    Args:
        shell: IPython's shell of this rank.
        world_size: how many ranks there are.
        paths: by name, the steps from it.
    """
    values = names.variables(shell.user_ns, shell.user_ns_hidden)
    hashes = _MemoryHashes()
    found: dict[str, Any] = {}
    for name, steps in paths.items():
        if name in values:
            view = shards.ShardView(world_size)
            inner = values[name]
            for step in steps:
                inner = _parts_of(inner).get(step)
            root: Root = ("name", name)
            compared = {"": inner, **_parts_of(inner)}
            found[name] = {step: _signature([root], {root: one}, shell, hashes, view) for step, one in compared.items()}
    return found


def _parts_of(value: Any) -> dict[str, Any]:
    """Return the parts of a value by the steps to them, which are the same on all ranks."""
    parts_of_value = islice(failing.parts(value), failing.MAX_PARTS)
    return {_OF_PROCESS.sub(b"", step.encode()).decode(): one for step, one in parts_of_value}


def _sharded(
    shell: Any, covariables_asked: Sequence[Sequence[str]], size: int, *, takes_several: bool = False
) -> list[Any]:
    """Return the DTensors of these co-variables, in the same order on all ranks; None, if they have others."""
    snapshot = writing.NamespaceSnapshot(shell, lambda root: any(_key(root) in keys for keys in covariables_asked))
    by_key = {_key(root): root for root in snapshot.values}
    view = shards.ShardView(size, takes_several=takes_several)
    for keys in covariables_asked:
        space = pickling.make_space(shell.user_ns, shell.user_module)
        space.hides = view.hide
        covariables.write_together([by_key[key] for key in keys], snapshot.values, space)
    return [None] if view.has_others and takes_several else view.tensors


def ways(shell: Any, size: int, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ways to the DTensors of each of these co-variables; None where there is no way that all ranks have."""

    def divided(keys: Sequence[str]) -> list[Any]:
        return _sharded(shell, [keys], size, takes_several=True)

    known = {id(tensor): way for way, tensor in ways_to_dtensors(shell.user_ns, size).items()}
    return {"ways": [[known.get(id(one)) for one in divided(keys)] for keys in asked["groups"]]}


def fill(shell: Any, size: int, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Give the DTensors of these co-variables the parts that a rank had that is gone; return this rank's own files."""
    tensors = _sharded(shell, asked["groups"], size, takes_several=True)
    found = read_parts(asked["list"], asked["bytes"], asked["ways"], tensors)
    shards.take([shards.NewPart(*one) for one in zip(tensors, found, strict=True)], size)
    return {"files": memory_files()}


def copy_out(shell: Any, folder: str, keys: Sequence[str]) -> dict[str, Any]:
    """Write these names, and the definitions below them, into a folder, as a group of a single rank would."""
    wanted = frozenset(keys)
    options = WriteOptions(0, 1, durable=False, judges_above=False, takes=lambda root: _key(root) in wanted)
    return writing.write_namespace(shell, folder, folder, options).to_dict()


def copy_in(shell: Any, folder: str, file: str, place: Place) -> dict[str, Any]:
    """Take the names that another rank has written; return the names, and what could not be read."""
    options = ReadOptions(*place, judges_above=False)
    return asdict(load(shell, folder, os.path.join(folder, os.path.basename(file)), options).commit())


def _key(root: Root) -> str:
    """Return a name for a name, a result of a cell or the random states, the same on all ranks."""
    kind, key = root
    return str(key) if kind == "name" else f"Out[{key}]" if kind == "result" else f"({key})"


def _signature(
    roots: list[Root], values: dict[Root, Any], shell: Any, hashes: _MemoryHashes, view: shards.ShardView
) -> str | None:
    """Return the hash of a co-variable, written alone: its numbers do not depend on what else a rank has."""
    space = pickling.make_space(shell.user_ns, shell.user_module)
    space.hides = view.hide
    roots = sorted(roots, key=_key)
    streams = [covariables.write_together(roots, values, space)]
    number = 0
    while number < len(space.definitions.objects):  # grows meanwhile
        if space.definitions.parents[number] == number:
            streams.append(covariables.write_together([("definition", number)], values, space))
        number += 1
    if any(stream.error is not None for stream in streams):
        return None
    digest = hashlib.blake2b(digest_size=16)
    for stream in streams:
        _add_stream(digest, b"".join(stream.parts))
    for memory in space.memory.memories():
        place = (
            memory.device.partition(":")[0],
            memory.num_bytes,
            [number - memory.blocks[0] for number in memory.blocks],
        )
        digest.update(repr((place, hashes.of(memory))).encode())
    return digest.hexdigest()


def _add_stream(digest: Any, data: bytes) -> None:
    """Add a stream to a digest: equal values give equal digests, whichever of their texts are the same object.

    A text that occurs twice is written once, and referred to then, if both are one object: users cannot notice that.
    Sets have their items in another order on each rank, by their addresses and hashes; numbers and texts are sorted.
    """
    texts: dict[int, bytes] = {}
    numbers: dict[int, int] = {}
    before: bytes | None = None
    parts: list[bytes] = []
    marks: list[int] = []  # where items begin, in `parts`
    operations: Iterator[tuple[Any, Any, Any]] = pickletools.genops(data)
    for operation, argument, _ in operations:
        name = operation.name
        if name == "MEMOIZE":
            place = len(texts) + len(numbers)
            if before is None:
                numbers[place] = len(numbers)
            else:
                texts[place] = before
            continue
        before = None
        if name in ("BINGET", "LONG_BINGET") and argument not in texts:
            parts.append(b"get %d" % numbers[argument])
        elif name in ("BINGET", "LONG_BINGET"):
            parts.append(texts[argument])
        elif name in _TEXTS:
            text = argument.encode("utf-8", "surrogatepass") if type(argument) is str else argument
            text = _OF_PROCESS.sub(b"", text)
            before = b"%s %d %s" % (type(argument).__name__.encode(), len(text), text)
            parts.append(before)
        elif name not in ("FRAME", "PROTO"):
            if pickletools.markobject in operation.stack_before and marks:
                _sort_items(name, parts, marks.pop())
            parts.append(f"{name} {argument!r}".encode())
            if name == "MARK":
                marks.append(len(parts))
    digest.update(b"\n".join(parts))


def _sort_items(operation: str, parts: list[bytes], first: int) -> None:
    """Sort the items of a set, which has been read from here on, if each is a number or a text."""
    if operation in _SETS and all(part.startswith(_PLAIN) for part in parts[first:]):
        parts[first:] = sorted(parts[first:])


_SETS = frozenset(("ADDITEMS", "FROZENSET"))
_PLAIN = (b"str ", b"bytes ", b"BININT", b"BINFLOAT", b"LONG", b"NEWTRUE", b"NEWFALSE", b"NONE")
_TEXTS = frozenset(("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8"))


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
