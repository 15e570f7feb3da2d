"""Calls functions on ranks (see objects/functions.py for how they travel)."""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from jupyter_dist.client.results.result import RankError, Result
from jupyter_dist.objects import files
from jupyter_dist.objects.functions import Sent, source_of
from jupyter_dist.objects.pickling import is_of_notebook
from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.protocol.wire import requests

from .exchange import exchange_folders, place_of


class Call:
    """One call: `request` goes to the ranks with `note` as its code, `values` returns their results."""

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], *, is_trusted: bool
    ) -> None:
        self._function = function
        self._is_trusted = is_trusted  # whether results may run code in this process
        self._stack = ExitStack()
        self._folders = self._stack.enter_context(exchange_folders())
        # In this order: the objects that the function names, the function, its arguments.
        given = {"classes": _classes_named(function), "function": Sent(function), "args": tuple(args), "kwargs": kwargs}
        try:
            path = files.save(given, [str(folder / "given") for folder in self._folders])
        except BaseException:
            self.close()
            raise
        self.note = f"# launch of {getattr(function, '__qualname__', repr(function))}"
        folders = [str(folder) for folder in self._folders]
        self.request: requests.RankCall = {"do": "call", "files": {"all": path}, "folders": folders}
        if not is_trusted:
            self.request["as_data"] = True

    def checked(self, result: Result) -> Result:
        """Return the result, if all ranks succeeded.

        Raises:
            RankError: otherwise; with a hint if a name was missing that the kernel has.
        """
        try:
            return result.raise_for_error()
        except RankError as err:
            raise RankError(err.message, result, self._hint(err)) from None

    def values(self, ranks: Iterable[int]) -> dict[int, Any]:
        """Return the function's results, by rank."""
        found = {
            rank: files.load(place_of(self._folders, rank), ["value"], is_trusted=self._is_trusted) for rank in ranks
        }
        return {rank: values["value"] for rank, values in found.items()}

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
        """Remove the files of the call. Idempotent."""
        self._stack.close()

    def __enter__(self) -> Call:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_one_node(num_nodes: int, node_rank: int) -> None:
    """Raise JupyterDistError if more than one machine is requested."""
    if num_nodes != 1 or node_rank != 0:
        raise bad_request(f"{num_nodes} nodes were requested.", "A group has one machine: num_nodes=1, node_rank=0.")


def _classes_named(function: Callable[..., Any]) -> dict[str, type]:
    """Return the notebook's classes that a function's code names."""
    if not isinstance(function, types.FunctionType) or not is_of_notebook(function):
        return {}
    source = source_of(function)
    if source is not None:  # with the classes in annotations and default values
        names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    else:
        names = set(_names_in(function.__code__))
    found = {name: function.__globals__.get(name) for name in sorted(names)}
    return {name: value for name, value in found.items() if isinstance(value, type) and value.__module__ == "__main__"}


def _names_in(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names_in(inner)
