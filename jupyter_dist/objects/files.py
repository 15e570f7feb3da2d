"""One object in one file: its description, then its large buffers, each where a mapping can be used in place.

Written and read by processes of one user, in a folder that only that user can enter.
"""

from __future__ import annotations

import errno
import mmap
import os
import pickle
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError

ALIGNMENT = 64


def save(values: Mapping[str, Any], paths: Sequence[str]) -> str:
    """Write named objects to the first of `paths` that has room, and return it; arrays without a copy in between.

    Raises:
        JupyterDistError: `cannot_send`, naming the object and why.
    """
    buffers: list[pickle.PickleBuffer] = []
    try:
        data = pickle.dumps(dict(values), protocol=5, buffer_callback=buffers.append)
    except Exception as err:  # an object's own code runs here, and may raise anything
        raise _cannot_send(values, err) from err
    pieces = [memoryview(data), *(buffer.raw() for buffer in buffers)]
    for path in paths:
        try:
            _write(path, pieces)
            return path
        except OSError as err:
            if err.errno != errno.ENOSPC or path == paths[-1]:
                raise JupyterDistError("cannot_send", f"The objects cannot be written: {err}.") from err
    raise ValueError("no path was given")


def load(path: str) -> dict[str, Any]:
    """Read what `save` wrote; arrays are mapped, not copied, and changes to them are this process's alone.

    Raises:
        JupyterDistError: `cannot_receive`, when the file is not here, or something that it names is not.
    """
    try:
        with open(path, "rb") as file:
            view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    except FileNotFoundError as err:
        message = "The objects are not on this machine."
        raise JupyterDistError("cannot_receive", message, "Objects travel between processes of one machine.") from err
    pieces = _pieces(view)
    try:
        values: dict[str, Any] = pickle.loads(pieces[0], buffers=pieces[1:])  # noqa: S301  (the user's own)
    except (AttributeError, ImportError) as err:
        hint = "Define or import it there first, with the same cell."
        raise JupyterDistError("cannot_receive", f"Something is missing here: {err}.", hint) from err
    return values


def _write(path: str, pieces: Sequence[memoryview]) -> None:
    header = struct.pack(f"!Q{len(pieces)}Q", len(pieces), *(piece.nbytes for piece in pieces))
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        position = _write_all(file, memoryview(header))
        for piece in pieces:
            position += _write_all(file, memoryview(bytes(-position % ALIGNMENT)))
            position += _write_all(file, piece)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(file)


def _write_all(file: int, piece: memoryview) -> int:
    done = 0
    while done < piece.nbytes:  # one call writes 2 GiB at most
        done += os.write(file, piece[done:])
    return done


def _pieces(view: memoryview) -> list[memoryview]:
    (count,) = struct.unpack_from("!Q", view)
    sizes = struct.unpack_from(f"!{count}Q", view, 8)
    position = 8 + 8 * count
    pieces = []
    for size in sizes:
        position += -position % ALIGNMENT
        pieces.append(view[position : position + size])
        position += size
    return pieces


def _cannot_send(values: Mapping[str, Any], error: Exception) -> JupyterDistError:
    for name, value in values.items():
        try:
            pickle.dumps(value, protocol=5)
        except Exception as err:  # as above
            message = f"'{name}' ({type(value).__name__}) cannot be sent: {err}."
            return JupyterDistError("cannot_send", message, "Send what it is made of, or make it there.")
    return JupyterDistError("cannot_send", f"The objects cannot be sent: {error}.")
