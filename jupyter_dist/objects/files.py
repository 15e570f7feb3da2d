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
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError

from . import staging
from .data import kinds
from .data.allowed import NotAllowedError
from .data.graph import NotDataError
from .pickling import dumps

ALIGNMENT = 64
# Below this size a copy is cheaper than keeping pages for it.
MIN_WARM_BYTES = 1 << 20
_PICKLE = b"\x80\x05"  # how one begins
MADV_POPULATE_READ = 22  # Linux 5.14; the mmap module does not name it


def pack(values: Mapping[str, Any], *, stages: bool = False, as_data: bool = False) -> list[memoryview]:
    """Return the pieces of a file of these named objects; arrays are not copied.

    Args:
        values: The objects, by name.
        stages: Leave large tensors on their device. Only `put` and `write` can copy such pieces (staging.py).
        as_data: Write data, for a reader that does not trust this machine (data/), and no pickle.

    Raises:
        JupyterDistError: `cannot_send`, naming the object and why.
    """
    pieces = _data(values, stages) if as_data else _pickle(values, stages)
    header = struct.pack(f"!Q{len(pieces)}Q", len(pieces), *(piece.nbytes for piece in pieces))
    aligned = [memoryview(header)]
    position = len(header)
    for piece in pieces:
        gap = -position % ALIGNMENT
        aligned += [memoryview(bytes(gap)), piece]
        position += gap + piece.nbytes
    return aligned


def _pickle(values: Mapping[str, Any], stages: bool) -> list[memoryview]:
    buffers: list[pickle.PickleBuffer] = []
    try:
        data = dumps(dict(values), buffers.append, stages=stages)
    except Exception as err:  # runs the object's own code, which may raise anything
        raise _cannot_send(values, err) from err
    return [memoryview(data), *(buffer.raw() for buffer in buffers)]


def _data(values: Mapping[str, Any], stages: bool) -> list[memoryview]:
    try:
        return kinds.write(dict(values), stages=stages)
    except NotDataError as err:
        for name, value in values.items():
            try:
                kinds.write(value)
            except NotDataError as why:
                raise _no_data(f"'{name}' has {why}.") from None
        raise _no_data(f"The objects have {err}.") from None


def _no_data(why: str) -> JupyterDistError:
    hint = (
        "From another machine come only numbers, texts, containers, arrays, tensors and data frames: take these."
        " Or, if you trust all nodes of the group: group.trust_nodes = True."
    )
    return JupyterDistError("cannot_send", f"{why} It could run code where it is read.", hint)


def size_of(pieces: Sequence[memoryview]) -> int:
    """Return the size of the file."""
    return sum(piece.nbytes for piece in pieces)


def save(values: Mapping[str, Any], paths: Sequence[str], warm: str = "", *, as_data: bool = False) -> str:
    """Write named objects and return the path: `warm` if they fit in that file, else the first path with space.

    Raises:
        JupyterDistError: `cannot_send`, naming the object and why.
    """
    pieces = pack(values, stages=True, as_data=as_data)
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


def load(
    path: str, names: Collection[str] = (), *, read_ahead: bool = False, is_trusted: bool = True
) -> dict[str, Any]:
    """Read a file that `save` wrote; arrays are mapped, not copied, and changes to them are private to this process.

    Args:
        path: The file.
        names: The objects that were asked for: another machine may have sent others.
        read_ahead: Map all pages at once, which is several times faster than one by one if all are used.
        is_trusted: Whether the file comes from this machine; else it must be data, which runs no code here (data/).

    Raises:
        JupyterDistError: `cannot_receive`, if the file, or something that it refers to, is missing here or refused.
    """
    try:
        with open(path, "rb") as file:
            # Held as long as the mapping, so that the owner does not overwrite data in use.
            fcntl.flock(file, fcntl.LOCK_SH)
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except ValueError as err:
        raise _unreadable("it is empty") from err
    except (FileNotFoundError, PermissionError) as err:
        message = "The objects are not on this machine."
        raise JupyterDistError(
            "cannot_receive", message, "Objects can only be sent between processes of one machine."
        ) from err
    if read_ahead:
        with contextlib.suppress(OSError):  # an older kernel
            mapping.madvise(MADV_POPULATE_READ)
    if not is_trusted:
        found = _read_data(memoryview(mapping))
        if lacking := sorted(set(names) - found.keys()):
            raise _unreadable(f"it has no '{lacking[0]:.100}'")
        return found
    pieces = _pieces(memoryview(mapping))
    if kinds.is_data(pieces[0]):
        return _read_data(memoryview(mapping))
    try:
        values: dict[str, Any] = pickle.loads(pieces[0], buffers=pieces[1:])  # noqa: S301  (the user's own data)
    except (AttributeError, ImportError) as err:
        hint = "Define or import it here first."
        raise JupyterDistError("cannot_receive", f"Something is missing here: {err}.", hint) from err
    return values


def _read_data(view: memoryview) -> dict[str, Any]:
    try:
        pieces = _pieces(view)
        if bytes(pieces[0][:2]) == _PICKLE:
            raise _refused("a pickle", "Its ranks run an earlier version: start the group again.")
        values = kinds.read(pieces)
        if type(values) is dict:
            return values
        why: object = f"it is a {type(values).__name__}"
    except NotAllowedError as err:
        allow = f"If you trust the class, allow it with torch.serialization.add_safe_globals([{err}])."
        raise _refused(f"a {err}", f"Take its data instead. {allow}") from None
    except JupyterDistError:
        raise
    except ImportError as err:
        message = f"Something is missing here: {err}."
        raise JupyterDistError("cannot_receive", message, "Install it here first.") from err
    except Exception as err:  # the bytes come from another machine
        why = err if isinstance(err, NotDataError) else f"{err!r:.200}"
    raise _unreadable(why)


def _unreadable(why: object) -> JupyterDistError:
    return JupyterDistError("cannot_receive", f"What the other machine sent cannot be read: {why}.")


def _refused(what: str, hint: str) -> JupyterDistError:
    message = f"The other machine sent {what}, which could run code here."
    return JupyterDistError("cannot_receive", message, f"{hint} Or, to trust it: group.trust_nodes = True.")


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
    """Return the pieces of a file, one after the other. Raises NotDataError if it is shorter than these."""
    (count,) = struct.unpack_from("!Q", view)
    if not 0 < count <= (view.nbytes - 8) // 8:
        raise NotDataError(f"{count} pieces in {view.nbytes} bytes")
    sizes = struct.unpack_from(f"!{count}Q", view, 8)
    position = 8 + 8 * count
    pieces = []
    for size in sizes:
        position += -position % ALIGNMENT
        pieces.append(view[position : position + size])
        position += size
    if position > view.nbytes:
        raise NotDataError(f"{position} bytes of pieces in {view.nbytes} bytes")
    return pieces


def _cannot_send(values: Mapping[str, Any], error: Exception) -> JupyterDistError:
    for name, value in values.items():
        try:
            dumps(value)
        except Exception as err:  # as above
            message = f"'{name}' ({type(value).__name__}) cannot be sent: {err}."
            return JupyterDistError("cannot_send", message, "Send its data, or create it on the ranks.")
    return JupyterDistError("cannot_send", f"The objects cannot be sent: {error}.")
