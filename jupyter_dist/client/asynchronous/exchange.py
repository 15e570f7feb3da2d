"""Exchanges objects with ranks, through files of this user that only the two processes open."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import keyword
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_dist.objects import files
from jupyter_dist.objects.segments import Segment, Segments, filled, parent_folders
from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.ranks import RankSet, ranks_in
from jupyter_dist.protocol.wire import requests

MEGABYTE = 1e6

RunCall = Callable[[requests.RankCall, str, str, "float | None"], Awaitable[None]]  # call, note, ranks, time limit


@dataclass(frozen=True)
class Exchanger:
    """A group, as an exchange of objects uses it."""

    model: models.GroupModel
    segments: Segments  # shared memory that is kept for later exchanges
    is_trusted: bool  # whether values of the ranks may run code in this process
    run_call: RunCall  # lets ranks carry out a call; the group's log shows the note

    def chosen(self, ranks: str) -> RankSet:
        """Return the ranks of a rank expression."""
        return ranks_in(self.model, ranks)


def trusts_ranks(group: models.GroupModel, trust_nodes: bool) -> bool:
    """Whether values of the ranks may run code here: always on this machine, where ranks run as this user."""
    return trust_nodes or not group.get("nodes")


async def push(group: Exchanger, values: Mapping[str, Any], ranks: str) -> None:
    """Set variables on ranks; all ranks share one copy."""
    _check_names(values)
    await _hand_out(group, {None: values}, ranks)


async def scatter(group: Exchanger, name: str, parts: Sequence[Any], ranks: str) -> None:
    """Set a variable to a different part on each rank."""
    _check_names([name])
    chosen = group.chosen(ranks)
    _check_parts(name, parts, len(chosen))
    await _hand_out(group, {rank: {name: part} for rank, part in zip(chosen, parts, strict=True)}, ranks)


async def gather(
    group: Exchanger, names: Sequence[str], ranks: str, timeout_seconds: float | None = None
) -> dict[int, dict[str, Any]]:
    """Return the values of expressions, by rank. Raises TimedOutError; ranks do not evaluate them after that."""
    for name in names:
        _check_expression(name)
    chosen = group.chosen(ranks)
    with exchange_folders() as folders:
        segments = await _collect(group, _asking_for(names, not group.is_trusted), chosen, folders, timeout_seconds)
        found = {
            rank: await asyncio.to_thread(_read, segment, names, group.is_trusted) for rank, segment in segments.items()
        }
    _give_back(group, segments.values())
    return found


async def broadcast(group: Exchanger, name: str, src: int, ranks: str) -> None:
    """Set a variable to its value on one of the ranks; this process never opens it."""
    _check_names([name])
    source = group.chosen(str(src))[0]
    others = [rank for rank in group.chosen(ranks) if rank != source]
    if not others:
        return
    with exchange_folders() as folders:
        segments = await _collect(group, _asking_for([name]), (source,), folders)
        place = folders[0] / "broadcast"
        place.symlink_to(segments[source].path)
        note = f"# broadcast of {name} from rank {source}"
        await group.run_call({"do": "set", "files": {"all": str(place)}}, note, str(RankSet(others)), None)
    _give_back(group, segments.values())


async def _hand_out(group: Exchanger, values: Mapping[int | None, Mapping[str, Any]], ranks: str) -> None:
    """Set each rank's values on that rank; the values under None are set on all ranks."""
    segments = []
    num_bytes = 0
    with exchange_folders() as folders:
        places = {}
        for rank, given in values.items():
            pieces = await asyncio.to_thread(files.pack, given)
            num_bytes += files.size_of(pieces)
            kept = group.segments.take(files.size_of(pieces))
            segments.append(await asyncio.to_thread(filled, kept, pieces))
            place = folders[0] / f"for-{rank}"
            # A unique name: a cell that runs after we gave up finds no file, and never another one.
            place.symlink_to(segments[-1].path)
            places["all" if rank is None else str(rank)] = str(place)
        names = ", ".join(dict.fromkeys(name for given in values.values() for name in given))
        note = f"# {'push' if None in values else 'scatter'} of {names}: {_size(num_bytes)}"
        await group.run_call({"do": "set", "files": places}, note, ranks, None)
    _give_back(group, segments)


def _asking_for(names: Sequence[str], as_data: bool = False) -> requests.RankCall:
    call: requests.RankCall = {"do": "get", "names": list(names)}
    if as_data:  # a server of an earlier version does not know it
        call["as_data"] = True
    return call


async def _collect(
    group: Exchanger,
    call: requests.RankCall,
    ranks: Sequence[int],
    folders: Sequence[Path],
    timeout_seconds: float | None = None,
) -> dict[int, Segment]:
    """Collect values from ranks: written into a kept segment if they fit, else into a new file."""
    offered: dict[int, Segment] = {}
    for rank in ranks:
        if (segment := group.segments.take()) is not None:
            segment.clear()
            (folders[0] / f"warm-{rank}").symlink_to(segment.path)
            offered[rank] = segment
    asked: requests.RankCall = {**call, "folders": [str(folder) for folder in folders]}
    await group.run_call(asked, f"# pull of {', '.join(call['names'])}", str(RankSet(ranks)), timeout_seconds)
    found = {}
    for rank in ranks:
        if rank in offered and offered[rank].is_written:
            found[rank] = offered.pop(rank)
        else:
            found[rank] = Segment(os.open(place_of(folders, rank), os.O_RDWR | os.O_CLOEXEC))
    _give_back(group, offered.values())
    return found


def _read(segment: Segment, names: Sequence[str], is_trusted: bool) -> dict[str, Any]:
    read_ahead = segment.size_bytes >= files.MIN_WARM_BYTES
    return files.load(segment.path, names, read_ahead=read_ahead, is_trusted=is_trusted)


def _give_back(group: Exchanger, segments: Iterable[Segment]) -> None:
    """Keep the segments, only on success: otherwise a rank may still be about to use them."""
    for segment in segments:
        group.segments.keep(segment)


@contextlib.contextmanager
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


def _size(num_bytes: int) -> str:
    return f"{num_bytes / MEGABYTE:.1f} MB" if num_bytes >= MEGABYTE else f"{num_bytes} bytes"


def _check_names(names: Mapping[str, Any] | Sequence[str]) -> None:
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name):
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
