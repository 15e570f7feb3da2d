"""Why a value cannot be written, as a sentence for users."""

from __future__ import annotations

import pickle
import re
from typing import Any, TypedDict

from jupyter_dist.rank.ipython.tracebacks import safe_message, safe_name

MAX_CHARS = 300


class Lacking(TypedDict):
    """A name, or a part of it, that is not written or not read."""

    name: str
    reason: str


_CANNOT = re.compile(r"cannot pickle '?([\w.]+)'? objects?")
_KINDS = {
    "generator": "it holds a generator, whose position in its code cannot be saved",
    "async_generator": "it holds a generator, whose position in its code cannot be saved",
    "coroutine": "it holds a coroutine, whose position in its code cannot be saved",
    "frame": "it holds a running call",
    "traceback": "it holds a traceback",
    "_io.TextIOWrapper": "it holds an open file",
    "_io.BufferedReader": "it holds an open file",
    "_io.BufferedWriter": "it holds an open file",
    "_io.BufferedRandom": "it holds an open file",
    "_io.FileIO": "it holds an open file",
    "socket.socket": "it holds a socket",
    "_thread.lock": "it holds a lock that is held",
    "threading.Thread": "it holds a running thread",
    "_queue.SimpleQueue": "it holds a queue of threads",
    "_thread._local": "it holds variables of a thread",
    "mmap.mmap": "it holds a file that is mapped into memory",
    "sqlite3.Connection": "it holds a connection to a database",
    "weakref.ReferenceType": "it holds a weak reference",
    "weakref": "it holds a weak reference",
}


def of(error: BaseException) -> str:
    """Return the reason for an error of pickle."""
    if isinstance(error, RecursionError):
        return "its objects are nested too deep"
    said = safe_message(error)
    found = _CANNOT.search(said)
    kind = found[1] if found else ""
    if isinstance(error, NotImplementedError) and "DataLoaderIter" in said:
        return "it holds an iterator of a DataLoader, whose position in the data cannot be saved"
    if isinstance(error, pickle.PicklingError) and said.startswith("it holds "):
        return said[:MAX_CHARS]
    if kind in _KINDS:
        return _KINDS[kind]
    if kind:
        return f"it holds an object of type {kind}, which cannot be pickled"
    return f"{safe_name(error)}: {said}"[:MAX_CHARS] if said else safe_name(error)


def type_name(value: Any) -> str:
    """Return the name of the type of a value; no code of the user runs."""
    return str(type.__dict__["__name__"].__get__(type(value)))[:MAX_CHARS]
