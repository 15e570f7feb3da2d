"""Exchanges objects with ranks, through files of this user that only the two processes open."""

from __future__ import annotations

import ast
import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_dist.objects import files
from jupyter_dist.objects.segments import Segment, filled, parent_folders
from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.ranks import format_ranks, parse_ranks

if TYPE_CHECKING:
    from jupyter_dist.client.asynchronous.group import AsyncGroup

# Runs on a rank, which has this package even if it is not installed in the environment.
FILES = '__import__("jupyter_dist.objects.files", fromlist=["files"])'
OWN_RANK = '__import__("os").environ["RANK"]'


async def push(group: AsyncGroup, values: Mapping[str, Any], ranks: str) -> None:
    """Set variables on ranks; all ranks share one copy."""
    _check_names(values)
    await _hand_out(group, {None: values}, ranks)


async def scatter(group: AsyncGroup, name: str, parts: Sequence[Any], ranks: str) -> None:
    """Set a variable to a different part on each rank."""
    _check_names([name])
    chosen = parse_ranks(ranks, group.world_size)
    _check_parts(name, parts, len(chosen))
    await _hand_out(group, {rank: {name: part} for rank, part in zip(chosen, parts, strict=True)}, ranks)


async def gather(group: AsyncGroup, names: Sequence[str], ranks: str) -> dict[int, dict[str, Any]]:
    """Return the values of expressions, by rank."""
    for name in names:
        _check_expression(name)
    chosen = parse_ranks(ranks, group.world_size)
    with exchange_folders() as folders:
        segments = await _collect(group, names, chosen, folders)
        found = {rank: await asyncio.to_thread(_read, segment) for rank, segment in segments.items()}
    _give_back(group, segments.values())
    return found


async def broadcast(group: AsyncGroup, name: str, src: int, ranks: str) -> None:
    """Set a variable to its value on one of the ranks; this process never opens it."""
    _check_names([name])
    source = parse_ranks(str(src), group.world_size)[0]
    others = [rank for rank in parse_ranks(ranks, group.world_size) if rank != source]
    if not others:
        return
    with exchange_folders() as folders:
        segments = await _collect(group, [name], (source,), folders)
        place = folders[0] / "broadcast"
        place.symlink_to(segments[source].path)
        await _run(group, f"globals().update({FILES}.load({str(place)!r}))", format_ranks(others))
    _give_back(group, segments.values())


async def _hand_out(group: AsyncGroup, values: Mapping[int | None, Mapping[str, Any]], ranks: str) -> None:
    """Set each rank's values, or those of None on all ranks."""
    segments = []
    with exchange_folders() as folders:
        places = {}
        for rank, given in values.items():
            pieces = await asyncio.to_thread(files.pack, given)
            kept = group.client.segments.take(files.size_of(pieces))
            segments.append(await asyncio.to_thread(filled, kept, pieces))
            place = folders[0] / f"for-{rank}"
            # A unique name: a cell that runs after we gave up finds no file, and never another one.
            place.symlink_to(segments[-1].path)
            places[rank] = str(place)
        place_code = repr(places[None]) if None in places else f"{places!r}[int({OWN_RANK})]"
        await _run(group, f"globals().update({FILES}.load({place_code}))", ranks)
    _give_back(group, segments)


async def _collect(
    group: AsyncGroup, names: Sequence[str], ranks: Sequence[int], folders: Sequence[Path]
) -> dict[int, Segment]:
    """Collect values from ranks: written into a kept segment if they fit, else into a new file."""
    offered: dict[int, Segment] = {}
    for rank in ranks:
        if (segment := group.client.segments.take()) is not None:
            segment.clear()
            (folders[0] / f"warm-{rank}").symlink_to(segment.path)
            offered[rank] = segment
    values = "{" + ", ".join(f"{name!r}: ({name})" for name in names) + "}"
    paths = f"[folder + {OWN_RANK} for folder in {[f'{folder}/' for folder in folders]!r}]"
    warm = f"{f'{folders[0]}/warm-'!r} + {OWN_RANK}"
    await _run(group, f"{FILES}.save({values}, {paths}, {warm});", format_ranks(ranks))
    found = {}
    for rank in ranks:
        if rank in offered and offered[rank].is_written:
            found[rank] = offered.pop(rank)
        else:
            found[rank] = Segment(os.open(place_of(folders, rank), os.O_RDWR | os.O_CLOEXEC))
    _give_back(group, offered.values())
    return found


def _read(segment: Segment) -> dict[str, Any]:
    return files.load(segment.path, read_ahead=segment.size_bytes >= files.MIN_WARM_BYTES)


def _give_back(group: AsyncGroup, segments: Iterable[Segment]) -> None:
    """Keep the segments, only on success: otherwise a rank may still be about to use them."""
    for segment in segments:
        group.client.segments.keep(segment)


@contextmanager
def exchange_folders() -> Iterator[list[Path]]:
    """Create private temporary folders for files, in memory first."""
    folders = [Path(tempfile.mkdtemp(prefix="jupyter-dist-", dir=parent)) for parent in parent_folders()]
    try:
        yield folders
    finally:  # mapped files exist until they are unmapped
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def place_of(folders: Sequence[Path], rank: int) -> str:
    """Return the path of the file that a rank has written."""
    for folder in folders:
        if (folder / str(rank)).exists():
            return str(folder / str(rank))
    message = f"The objects of rank {rank} are not on this machine."
    raise JupyterDistError("cannot_receive", message, "Objects travel between processes of one machine.")


async def _run(group: AsyncGroup, code: str, ranks: str) -> None:
    result = await group.run(code, ranks, silent=True)
    result.was_streamed = True  # our own code: its traceback does not help users
    result.raise_for_error()


def _check_names(names: Mapping[str, Any] | Sequence[str]) -> None:
    for name in names:
        if not name.isidentifier():
            raise bad_request(f"'{name}' is not a variable name.")


def _check_parts(name: str, parts: Any, num_ranks: int) -> None:
    try:
        has = f"has {len(parts)}"
        fits = len(parts) == num_ranks
    except TypeError:
        has, fits = f"is of type {type(parts).__name__}, which has no", False
    if not fits:
        hint = f"Split it first: numpy.array_split(x, {num_ranks}), torch.tensor_split(...)."
        raise bad_request(f"'{name}' {has} parts for {num_ranks} ranks.", hint)


def _check_expression(text: str) -> None:
    try:
        ast.parse(f"({text})", mode="eval")
    except SyntaxError as err:
        raise bad_request(f"'{text}' is not an expression.", "Use a variable's name, or any other expression.") from err
