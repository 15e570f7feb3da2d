"""Functions on ranks: of a module by their name, of a notebook by their source."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from jupyter_dist.objects import files
from jupyter_dist.protocol.errors import JupyterDistError, bad_request

from .exchange import exchange_folders, place_of

CALL = '__import__("jupyter_dist.objects.calls", fromlist=["calls"]).call'
OWN_RANK = '__import__("os").environ["RANK"]'


class Call:
    """One call: `code` is what the ranks run, `values` what they returned."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        source = _source(function) if _is_of_notebook(function) else None
        self._stack = ExitStack()
        self._folders = self._stack.enter_context(exchange_folders())
        given = {"args": tuple(args), "kwargs": dict(kwargs), **({} if source else {"function": function})}
        try:
            path = files.save(given, [str(folder / "given") for folder in self._folders])
        except BaseException:
            self.close()
            raise
        values = f"[folder + {OWN_RANK} for folder in {[f'{folder}/' for folder in self._folders]!r}]"
        self.code = f"{source or ''}{CALL}({function.__name__ if source else None}, {path!r}, {values})"

    def values(self, ranks: Iterable[int]) -> dict[int, Any]:
        """What the function returned, by rank."""
        return {rank: files.load(place_of(self._folders, rank))["value"] for rank in ranks}

    def close(self) -> None:
        """Remove its files. Idempotent."""
        self._stack.close()

    def __enter__(self) -> Call:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_one_node(num_nodes: int, node_rank: int) -> None:
    """Raises JupyterDistError when more than this machine is asked for."""
    if num_nodes != 1 or node_rank != 0:
        raise bad_request(f"{num_nodes} nodes were asked for.", "A group is on one machine: num_nodes=1, node_rank=0.")


def _is_of_notebook(function: Callable[..., Any]) -> bool:
    return getattr(function, "__module__", None) in ("__main__", None) or function.__module__ not in sys.modules


def _source(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", repr(function))
    hint = "Define it with def at the top level of a cell, or in a module that the ranks can import."
    if not inspect.isfunction(function) or name == "<lambda>":
        raise JupyterDistError("cannot_send", f"'{name}' is not a function with a name.", hint)
    if function.__closure__:
        names = ", ".join(f"'{variable}'" for variable in function.__code__.co_freevars)
        raise JupyterDistError("cannot_send", f"'{name}' uses {names} of the function around it.", hint)
    try:
        return textwrap.dedent(inspect.getsource(function)).rstrip("\n") + "\n"
    except (OSError, TypeError) as err:
        raise JupyterDistError("cannot_send", f"The source of '{name}' is not known: {err}.", hint) from err
