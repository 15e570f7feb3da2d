"""Calls of clients on a rank, besides cells: variables, values, functions, scripts, and calls of parts.

This is our own code on the main thread, so it works whatever names a cell has replaced in its namespace. The functions
and scripts are the user's code, which can be interrupted (see interrupt.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jupyter_dist.objects import files
from jupyter_dist.rank.guard.own import os

from . import scripts
from .farfiles import FarFiles

INTERRUPTIBLE = True
CALLS_USER_CODE = True

Call = dict[str, Any]  # requests.RankCall


class Calls:
    """The calls of one rank, a method each."""

    def __init__(
        self,
        rank: int,
        namespace: dict[str, Any],
        of_parts: Mapping[str, Callable[[Call], None]],
        store_socket: str = "",
    ) -> None:
        self.rank = rank
        self._far = FarFiles(store_socket) if store_socket else None
        self._namespace = namespace
        self._ways: dict[str, Callable[[Call], None]] = {
            "set": self._set,
            "get": self._get,
            "call": self._call,
            "script": self._script,
            **of_parts,
        }

    def carry_out(self, call: Call) -> None:
        """Carry out a call of a client; exceptions of the user's code pass through."""
        self._ways[call["do"]](call)

    def _set(self, call: Call) -> None:
        self._namespace.update(self._given(call))

    def _get(self, call: Call) -> None:
        values = {name: eval(f"({name})", self._namespace) for name in call["names"]}  # noqa: S307  (the user's own)
        self._save(values, call)

    def _call(self, call: Call) -> None:
        given = self._given(call)
        self._save({"value": given["function"](*given["args"], **given["kwargs"])}, call)

    def _script(self, call: Call) -> None:
        scripts.run(call["argv"], call.get("path"), call.get("module"))

    def _given(self, call: Call) -> dict[str, Any]:
        """Return the values in the client's file that are for this rank."""
        paths: dict[str, str] = call["files"]
        path = paths.get(str(self.rank)) or paths["all"]
        if self._far is None:
            return files.load(path)
        with self._far.here(path) as copy:
            return files.load(copy)

    def _save(self, values: dict[str, Any], call: Call) -> None:
        """Write a file named after this rank, or write over the one with kept pages that the client offers."""
        folders: list[str] = call["folders"]
        as_data = call.get("as_data", False)
        if self._far is not None and not os.path.isdir(folders[0]):
            self._far.deliver(values, folders, self.rank, as_data)
            return
        warm = os.path.join(folders[0], f"warm-{self.rank}")
        files.save(values, [os.path.join(folder, str(self.rank)) for folder in folders], warm, as_data=as_data)
