"""Exchange of files between a client and a rank on another machine, over the node agent's connection."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jupyter_dist.objects import files
from jupyter_dist.protocol.wire.requests import CHUNK_BYTES
from jupyter_dist.rank.collectives.linkstore import ask
from jupyter_dist.rank.guard.own import os

INTERRUPTIBLE = True  # a large file takes a while

PART_SECONDS = 120.0
MEMORY = "/dev/shm"  # noqa: S108  (the file there has no name for others)


class FarFiles:
    """Fetches files for a rank and delivers its values, through the rank's node agent."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path

    @contextmanager
    def here(self, path: str) -> Iterator[str]:
        """Return the path of a copy on this machine, removed afterwards; or of the file itself, if it is here."""
        if os.path.exists(path):
            yield path
            return
        folder = MEMORY if os.access(MEMORY, os.W_OK) else None
        with tempfile.NamedTemporaryFile(dir=folder, prefix="jupyter-dist-") as copy:
            position, size = 0, 1
            while position < size:
                answer, data = ask(
                    self._socket_path, {"do": "fetch", "path": path, "offset": position}, b"", PART_SECONDS
                )
                size = int(answer["size"])
                copy.write(data)
                position = position + len(data) if data else size
            copy.flush()
            yield copy.name

    def deliver(self, values: Mapping[str, Any], folders: Sequence[str], rank: int, as_data: bool) -> None:
        """Write named objects to the client's machine, into the first of these folders there that has space.

        Raises:
            JupyterDistError: `cannot_send`, naming the object and why.
        """
        pieces = files.pack(values, as_data=as_data)
        for folder in folders:
            try:
                self._deliver(pieces, folder, rank)
                return
            except OSError as err:
                if err.errno != errno.ENOSPC or folder == folders[-1]:
                    raise files.cannot_write(err) from err

    def _deliver(self, pieces: Sequence[memoryview], folder: str, rank: int) -> None:
        position = 0
        for part in _parts(pieces):
            question = {"do": "deliver", "folder": folder, "rank": rank, "offset": position}
            ask(self._socket_path, question, part, PART_SECONDS)
            position += len(part)


def _parts(pieces: Sequence[memoryview]) -> Iterator[bytes]:
    """Yield the content in parts of CHUNK_BYTES, the last one shorter."""
    gathered = bytearray()
    for piece in pieces:
        rest = piece.cast("B")
        while rest.nbytes:
            taken = min(rest.nbytes, CHUNK_BYTES - len(gathered))
            gathered += rest[:taken]
            rest = rest[taken:]
            if len(gathered) == CHUNK_BYTES:
                yield bytes(gathered)
                gathered.clear()
    if gathered:
        yield bytes(gathered)
