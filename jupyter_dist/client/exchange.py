"""Objects to ranks and back: through files of this user's that only the two processes open."""

from __future__ import annotations

import ast
import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_dist.objects import files
from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.ranks import parse_ranks

if TYPE_CHECKING:
    from .aio import AsyncGroup

SHARED_MEMORY = "/dev/shm"  # noqa: S108  (a folder of our own is made in it)
# What runs on a rank; it has this package, whether or not it is installed in its environment.
FILES = '__import__("jupyter_dist.objects.files", fromlist=["files"])'
OWN_RANK = '__import__("os").environ["RANK"]'


async def push(group: AsyncGroup, values: Mapping[str, Any], ranks: str) -> None:
    """Give ranks variables: one copy for all, however many they are."""
    _check_names(values)
    with exchange_folders() as folders:
        paths = [str(folder / "all") for folder in folders]
        path = await asyncio.to_thread(files.save, values, paths)
        await _run(group, f"globals().update({FILES}.load({path!r}))", ranks)


async def scatter(group: AsyncGroup, name: str, parts: Sequence[Any], ranks: str) -> None:
    """Give each rank its part."""
    _check_names([name])
    chosen = parse_ranks(ranks, group.world_size)
    if len(parts) != len(chosen):
        message = f"'{name}' has {len(parts)} parts for {len(chosen)} ranks."
        raise bad_request(message, f"Cut it first: numpy.array_split(x, {len(chosen)}), torch.tensor_split(...).")
    with exchange_folders() as folders:
        places = {}
        for rank, part in zip(chosen, parts, strict=True):
            paths = [str(folder / str(rank)) for folder in folders]
            places[rank] = await asyncio.to_thread(files.save, {name: part}, paths)
        await _run(group, f"globals().update({FILES}.load({places!r}[int({OWN_RANK})]))", ranks)


async def gather(group: AsyncGroup, names: Sequence[str], ranks: str) -> dict[int, dict[str, Any]]:
    """The values of expressions on ranks, by rank."""
    for name in names:
        _check_expression(name)
    chosen = parse_ranks(ranks, group.world_size)
    with exchange_folders() as folders:
        values = "{" + ", ".join(f"{name!r}: ({name})" for name in names) + "}"
        paths = f"[folder + {OWN_RANK} for folder in {[f'{folder}/' for folder in folders]!r}]"
        await _run(group, f"{FILES}.save({values}, {paths});", ranks)
        return {rank: await asyncio.to_thread(files.load, place_of(folders, rank)) for rank in chosen}


@contextmanager
def exchange_folders() -> Iterator[list[Path]]:
    """Where a file may be put, memory first; only this user can enter, and nothing of it stays."""
    parents = [SHARED_MEMORY, None] if os.access(SHARED_MEMORY, os.W_OK) else [None]
    folders = [Path(tempfile.mkdtemp(prefix="jupyter-dist-", dir=parent)) for parent in parents]
    try:
        yield folders
    finally:  # what is mapped goes on until it is used no more
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def place_of(folders: Sequence[Path], rank: int) -> str:
    """Where a rank has left its file."""
    for folder in folders:
        if (folder / str(rank)).exists():
            return str(folder / str(rank))
    message = f"The objects of rank {rank} are not on this machine."
    raise JupyterDistError("cannot_receive", message, "Objects travel between processes of one machine.")


async def _run(group: AsyncGroup, code: str, ranks: str) -> None:
    (await group.run(code, ranks, silent=True)).raise_for_error()


def _check_names(names: Mapping[str, Any] | Sequence[str]) -> None:
    for name in names:
        if not name.isidentifier():
            raise bad_request(f"'{name}' is not a name for a variable.")


def _check_expression(text: str) -> None:
    try:
        ast.parse(f"({text})", mode="eval")
    except SyntaxError as err:
        raise bad_request(
            f"'{text}' is not an expression.", "A variable's name, or anything that has a value."
        ) from err
