"""What cells have changed of their process: the folder, the environment variables, and where modules are found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.rank.guard.own import os

_start: dict[str, str] = {}
_path_before: list[str] = []

# Each group, and each rank, has its own.
_OF_GROUPS = frozenset(
    (
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "GROUP_RANK",
        "MASTER_ADDR",
        "MASTER_PORT",
        "PWD",
        "OLDPWD",
    )
)
_OF_US = "JUPYTER_DIST_"
_OF_DEVICES = frozenset(one.visible_devices for one in ACCELERATORS.values() if one.visible_devices is not None)

Environment = dict[str, Any]


def remember() -> None:
    """Remember the variables, and where modules are found, before the first cell."""
    _start.clear()
    _start.update(os.environ)
    _path_before[:] = _path()


def follow(changed: Mapping[str, str]) -> None:
    """Remember variables that a resize of the group has changed: no cell did."""
    _start.update(changed)


def take() -> Environment:
    """Return the folder, what cells changed of the variables, and where modules are found."""
    names = {name for name in {*os.environ, *_start} if os.environ.get(name) != _start.get(name)} if _start else set()
    variables = {name: os.environ.get(name) for name in sorted(names) if not _is_of_group(name)}
    return {"folder": _folder(), "variables": variables, "path": _path(), "path_before": list(_path_before)}


def enter(environment: Environment) -> tuple[list[str], Callable[[], None]]:
    """Set the folder, the variables and where modules are found.

    Returns:
        Sentences on what cannot be set here, and a function that sets everything as it was.
    """
    before = (_folder(), dict(os.environ), list(sys.path))
    for name, value in environment["variables"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    sys.path[:] = _joined(environment["path"], environment.get("path_before", []))
    return _change_folder(environment["folder"]), lambda: _leave(*before)


def _leave(folder: str | None, variables: dict[str, str], path: list[str]) -> None:
    sys.path[:] = path
    for name in os.environ.keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)
    _change_folder(folder)


def _change_folder(folder: str | None) -> list[str]:
    if folder is not None and folder != _folder():
        try:
            os.chdir(folder)
        except OSError as err:
            return [f"The working directory {folder} was not restored: {err.strerror}."]
    return []


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def _path() -> list[str]:
    return [one for one in sys.path if type(one) is str]


def _joined(path: list[str], before: list[str]) -> list[str]:
    """Return where modules are found: here, with what cells had put before the rest, removed, and put behind it."""
    here = sys.path
    first = next((place for place, one in enumerate(path) if one in before), 0)
    front = path[:first]
    removed = {one for one in before if one not in path}
    kept = [one for one in here if one not in front and one not in removed]
    return [*front, *kept, *(one for one in path[first:] if one not in kept)]


def _is_of_group(name: str) -> bool:
    return name in _OF_GROUPS or name in _OF_DEVICES or name.startswith(_OF_US)
