"""Calls functions on ranks: those of a module by name, those of a notebook by source code."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from jupyter_dist.client.results.result import RankError, Result
from jupyter_dist.objects import files
from jupyter_dist.protocol.errors import JupyterDistError, bad_request

from .exchange import exchange_folders, place_of

CALLS = '__import__("jupyter_dist.objects.calls", fromlist=["calls"])'
OWN_RANK = '__import__("os").environ["RANK"]'


class Call:
    """One call: `code` runs on the ranks, `values` returns their results."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        source = _source(function) if _is_of_notebook(function) else None
        self._function = function
        self._stack = ExitStack()
        self._folders = self._stack.enter_context(exchange_folders())
        given = {"args": tuple(args), "kwargs": dict(kwargs), **({} if source else {"function": function})}
        try:
            prepare = self._prepare(_classes_named(source, function)) if source else ""
            path = self._saved(given, "given")
        except BaseException:
            self.close()
            raise
        values = f"[folder + {OWN_RANK} for folder in {[f'{folder}/' for folder in self._folders]!r}]"
        name = function.__name__ if source else None
        self.code = f"{prepare}{source or ''}{CALLS}.call({name}, {path!r}, {values})"

    def checked(self, result: Result) -> Result:
        """The result, if all ranks succeeded.

        Raises:
            RankError: otherwise; with a hint if a name was missing that the kernel has.
        """
        try:
            return result.raise_for_error()
        except RankError as err:
            raise RankError(err.message, result, self._hint(err)) from None

    def values(self, ranks: Iterable[int]) -> dict[int, Any]:
        """Return the function's results, by rank."""
        return {rank: files.load(place_of(self._folders, rank))["value"] for rank in ranks}

    def _saved(self, values: Mapping[str, Any], name: str) -> str:
        return files.save(values, [str(folder / name) for folder in self._folders])

    def _prepare(self, classes: Mapping[str, Any]) -> str:
        """Return code for what the function needs when it is defined."""
        return f"{CALLS}.bring({self._saved(classes, 'classes')!r})\n" if classes else ""

    def _hint(self, error: RankError) -> str:
        for found in error.errors.values():
            missing = re.search(r"name '(\w+)' is not defined", found.evalue) if found.ename == "NameError" else None
            here = getattr(self._function, "__globals__", {})
            if missing and missing[1] in here:
                name = missing[1]
                if isinstance(here[name], types.ModuleType):
                    return f"The kernel has imported '{name}', the ranks have not: import it in the function."
                way = f"run its cell there too, or push({{'{name}': {name}}})"
                return f"The kernel has '{name}', the ranks have not: {way}."
        return ""

    def close(self) -> None:
        """Remove its files. Idempotent."""
        self._stack.close()

    def __enter__(self) -> Call:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_one_node(num_nodes: int, node_rank: int) -> None:
    """Raise JupyterDistError if more than one machine is requested."""
    if num_nodes != 1 or node_rank != 0:
        raise bad_request(f"{num_nodes} nodes were requested.", "A group has one machine: num_nodes=1, node_rank=0.")


def _is_of_notebook(function: Callable[..., Any]) -> bool:
    return getattr(function, "__module__", None) in ("__main__", None) or function.__module__ not in sys.modules


def _classes_named(source: str, function: Callable[..., Any]) -> dict[str, type]:
    """Return the notebook's classes that a function's code names."""
    names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    found = {name: function.__globals__.get(name) for name in sorted(names)}
    return {name: value for name, value in found.items() if isinstance(value, type) and value.__module__ == "__main__"}


def _source(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", repr(function))
    hint = "Define it with def at the top level of a cell, or in a module that the ranks can import."
    if not inspect.isfunction(function) or name == "<lambda>":
        raise JupyterDistError("cannot_send", f"'{name}' is not a named function.", hint)
    if function.__closure__:
        names = ", ".join(f"'{variable}'" for variable in function.__code__.co_freevars)
        raise JupyterDistError("cannot_send", f"'{name}' uses {names} of the function around it.", hint)
    try:
        return textwrap.dedent(inspect.getsource(function)).rstrip("\n") + "\n"
    except (OSError, TypeError) as err:
        raise JupyterDistError("cannot_send", f"The source of '{name}' is not available: {err}.", hint) from err
