"""Whether a group can restore a save. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say

if TYPE_CHECKING:
    from jupyter_dist.parts.saves.models import SaveModel


def cannot_restore(save: SaveModel, world_size: int, python_version: str | None) -> JupyterDistError | None:
    """Return why a group cannot restore a save: `cannot_restore`, or `other_version`, which may be tried all the same.

    Args:
        save: the save.
        world_size: the number of ranks of the group.
        python_version: the version that its ranks run, if it is known.
    """
    name = save["name"]
    if save["world_size"] != world_size:
        message = say("The save '%1' has %2 ranks, and this group has %3.", name, save["world_size"], world_size)
        hint = say("Start a group with %1 ranks, and restore it there.", save["world_size"])
        return JupyterDistError("cannot_restore", message, hint)
    if python_version and _minor(save["python_version"]) != _minor(python_version):
        made_by = save["python_version"]
        message = say("The save '%1' was made by Python %2; this group runs %3.", name, made_by, python_version)
        why = join(
            say("Functions and classes of cells are kept as bytecode, which differs between versions of Python."),
            say("Start a group with Python %1, or try it with `any_version`.", _minor(made_by)),
        )
        return JupyterDistError("other_version", message, why)
    return None


def other_torch(saved: str, here: str) -> str | None:
    """Return a sentence about a save of another version of torch; None if the versions are alike."""
    if _minor(saved) == _minor(here):
        return None
    return f"The save was made with torch {saved}, and this group runs {here}: objects of torch's own may have changed."


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
