"""A file of objects: a description, then large buffers, aligned so that a memory map can be used in place.

Written and read by processes of one user, in a folder that only that user can enter.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import pickle
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError

from . import staging
from .pickling import dumps

ALIGNMENT = 64
# Below this size a copy is cheaper than keeping pages for it.
MIN_WARM_BYTES = 1 << 20
MADV_POPULATE_READ = 22  # Linux 5.14; the mmap module does not name it


def pack(values: Mapping[str, Any], *, stages: bool = False) -> list[memoryview]:
    """Return the pieces of a file of these named objects; arrays are not copied.

    Args:
        values: The objects, by name.
        stages: Leave large tensors on their device. Only `put` and `write` can copy such pieces (staging.py).

    Raises:
        JupyterDistError: `cannot_send`, naming the object and why.
    """
    buffers: list[pickle.PickleBuffer] = []
    try:
        data = dumps(dict(values), buffers.append, stages=stages)
    except Exception as err:  # runs the object's own code, which may raise anything
        raise _cannot_send(values, err) from err
    pieces = [memoryview(data), *(buffer.raw() for buffer in buffers)]
    header = struct.pack(f"!Q{len(pieces)}Q", len(pieces), *(piece.nbytes for piece in pieces))
    aligned = [memoryview(header)]
    position = len(header)
    for piece in pieces:
        gap = -position % ALIGNMENT
        aligned += [memoryview(bytes(gap)), piece]
        position += gap + piece.nbytes
    return aligned


def size_of(pieces: Sequence[memoryview]) -> int:
    """Return the size of the file."""
    return sum(piece.nbytes for piece in pieces)


def save(values: Mapping[str, Any], paths: Sequence[str], warm: str = "") -> str:
    """Write named objects and return the path: `warm` if they fit in that file, else the first path with space.

    Raises:
        JupyterDistError: `cannot_send`, naming the object and why.
    """
    pieces = pack(values, stages=True)
    try:
        return _save(pieces, paths, warm)
    except RuntimeError as err:  # of the device that a tensor is on
        raise _cannot_send(values, err) from err


def _save(pieces: Sequence[memoryview], paths: Sequence[str], warm: str) -> str:
    if warm and size_of(pieces) >= MIN_WARM_BYTES and _write_over(warm, pieces):
        return warm
    for path in paths:
        try:
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            try:
                write(file, pieces)
            except (OSError, RuntimeError):
                os.unlink(path)
                raise
            finally:
                os.close(file)
            return path
        except OSError as err:
            if err.errno != errno.ENOSPC or path == paths[-1]:
                raise cannot_write(err) from err
    raise ValueError("no path was given")


def load(path: str, *, read_ahead: bool = False, is_trusted: bool = True) -> dict[str, Any]:
    """Read a file that `save` wrote; arrays are mapped, not copied, and changes to them are private to this process.

    Args:
        path: The file.
        read_ahead: Map all pages at once, which is several times faster than one by one if all are used.
        is_trusted: Whether the file comes from this machine; else it may not choose code to run here (restricted.py).

    Raises:
        JupyterDistError: `cannot_receive`, if the file, or something that it refers to, is missing here or refused.
    """
    try:
        with open(path, "rb") as file:
            # Held as long as the mapping, so that the owner does not overwrite data in use.
            fcntl.flock(file, fcntl.LOCK_SH)
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (FileNotFoundError, PermissionError) as err:
        message = "The objects are not on this machine."
        raise JupyterDistError(
            "cannot_receive", message, "Objects can only be sent between processes of one machine."
        ) from err
    if read_ahead:
        with contextlib.suppress(OSError):  # an older kernel
            mapping.madvise(MADV_POPULATE_READ)
    if not is_trusted:
        return _load_restricted(memoryview(mapping))
    pieces = _pieces(memoryview(mapping))
    try:
        values: dict[str, Any] = pickle.loads(pieces[0], buffers=pieces[1:])  # noqa: S301  (the user's own data)
    except (AttributeError, ImportError) as err:
        hint = "Define or import it here first."
        raise JupyterDistError("cannot_receive", f"Something is missing here: {err}.", hint) from err
    return values


def _load_restricted(view: memoryview) -> dict[str, Any]:
    from . import restricted  # noqa: PLC0415 - not needed on one machine

    try:
        pieces = _pieces(view)
        values = restricted.loads(pieces[0], pieces[1:])
        if isinstance(values, dict):
            return values
        why = f"it is of type {type(values).__name__}"
    except restricted.RefusedError as err:
        raise restricted.refusal(err) from None
    except JupyterDistError:
        raise
    except ImportError as err:
        message = f"Something is missing here: {err}."
        raise JupyterDistError("cannot_receive", message, "Install it here first.") from err
    except Exception as err:  # the bytes come from another machine
        why = f"{err!r:.200}"
    raise JupyterDistError("cannot_receive", f"What the other machine sent cannot be read: {why}.")


def write(file: int, pieces: Sequence[memoryview]) -> None:
    """Write all pieces at the current position of the file."""
    for piece in pieces:
        for part in staging.parts(piece):
            done = 0
            while done < part.nbytes:  # one call writes at most 2 GiB
                done += os.write(file, part[done:])


def put(pieces: Sequence[memoryview], target: memoryview) -> None:
    """Copy all pieces into existing memory."""
    position = 0
    for piece in pieces:
        for part in staging.parts(piece):
            target[position : position + part.nbytes] = part
            position += part.nbytes


def mapped(file: int) -> mmap.mmap:
    """Map the existing pages of a file, to overwrite them."""
    return mmap.mmap(file, 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)


def cannot_write(error: OSError) -> JupyterDistError:
    """Return the error for a machine without space."""
    hint = "Shared memory or space for temporary files is needed; jupyter dist doctor shows how much there is."
    return JupyterDistError("cannot_send", f"The objects cannot be written: {error}.", hint)


def _write_over(path: str, pieces: Sequence[memoryview]) -> bool:
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:  # its owner is in another PID namespace, or has just ended
        return False
    try:
        if os.fstat(file).st_size < size_of(pieces):
            return False
        with mapped(file) as target, memoryview(target) as view:
            put(pieces, view)
        return True
    finally:
        os.close(file)


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
            dumps(value)
        except Exception as err:  # as above
            message = f"'{name}' ({type(value).__name__}) cannot be sent: {err}."
            return JupyterDistError("cannot_send", message, "Send its data, or create it on the ranks.")
    return JupyterDistError("cannot_send", f"The objects cannot be sent: {error}.")
