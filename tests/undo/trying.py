"""Tries of the ways and states of ways.py: each twice in one namespace, undone, and compared with before."""

from __future__ import annotations

import contextlib
import re
import warnings
from typing import Any

from keeping import Undoable

from jupyter_dist.protocol.errors import JupyterDistError

_STAYS = ("__name__", "_oh", "__builtins__", "warnings")


def outcomes(space: Undoable, setup: str, change: str, probe: str, last: str = "") -> list[str]:
    """Return what came of two undos of a change, and of a redo of the first: undone, named, refused, or silently different."""
    space.run(setup)
    found = [_once(space, change, probe) for _ in range(2)]
    if last:
        space.run(last, keep=False)
    for name in [name for name in space.names if name not in _STAYS]:
        del space.names[name]
    space.run("pass", keep=False)
    return found


def _once(space: Undoable, change: str, probe: str) -> str:
    before = _shown(space, probe)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        space.run(change)
    named, after = space.last["cell"]["not_kept"], _shown(space, probe)
    if space.last["cell"].get("reason"):
        return "refused"
    try:
        left = space.undo()
    except JupyterDistError:
        space.keeper.forget("The next try begins.")
        return "refused"
    found = "undone" if _shown(space, probe) == before else "named" if named or left else "SILENT"
    return found if found != "undone" or _is_done_again(space, probe, before, after) else "NOT AGAIN"


def _is_done_again(space: Undoable, probe: str, before: str, after: str) -> bool:
    """Redo the cell and undo it again: whether both times what is shown is right."""
    try:
        space.redo()
    except JupyterDistError as err:
        return "mode of torch" in str(err)
    is_right = _shown(space, probe) == after
    space.undo()
    return is_right and _shown(space, probe) == before


def _shown(space: Undoable, probe: str) -> str:
    with contextlib.suppress(Exception):
        return repr(eval(probe, space.names))
    return "an error"


def try_all(cases: dict[str, tuple[str, ...]], *, of_list: bool) -> dict[str, list[str]]:
    """Return the outcomes of all cases, in one namespace."""
    space = Undoable()
    found: dict[str, list[str]] = {}
    for number, (name, parts) in enumerate(cases.items()):
        setup, change, *rest = (re.sub(r"\bhist\b", f"hist{number}", part) for part in parts)
        if of_list:  # another name in each case: a name is kept in later cells once something unexpected changed it
            setup, rest = f"hist{number} = [0]\n{setup}", [f"hist{number}", *rest]
        found[name] = outcomes(space, setup, change, rest[0], rest[1] if rest[1:] else "")
    return found


def counts(found: dict[str, list[str]]) -> dict[str, int]:
    """Return how many of the first and second tries ended how."""
    tries: list[Any] = [one for pair in found.values() for one in pair]
    return {word: tries.count(word) for word in ("undone", "named", "refused", "SILENT")}


def rows(found: dict[str, list[str]]) -> list[str]:
    """Return the rows of the published table: what came of the first and of the second undo."""
    words = {"SILENT": "**not seen**"}
    return [f"| {name} | {words.get(one, one)} | {words.get(two, two)} |" for name, (one, two) in found.items()]
