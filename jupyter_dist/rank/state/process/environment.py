"""What cells have changed of their process: the folder, the environment variables, and where modules are found."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.rank.guard.own import os

_start: dict[str, str] = {}

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
    """Remember the variables that the process has before the first cell."""
    _start.clear()
    _start.update(os.environ)


def follow(changed: Mapping[str, str]) -> None:
    """Remember variables that a resize of the group has changed: no cell did."""
    _start.update(changed)


def take() -> Environment:
    """Return the folder, what cells changed of the variables, and where modules are found."""
    names = {name for name in {*os.environ, *_start} if os.environ.get(name) != _start.get(name)} if _start else set()
    variables = {name: os.environ.get(name) for name in sorted(names) if not _is_of_group(name)}
    try:
        folder = os.getcwd()
    except OSError:  # it was removed
        folder = None
    return {"folder": folder, "variables": variables, "path": [one for one in sys.path if type(one) is str]}


def put_back(environment: Environment) -> list[str]:
    """Set the folder and the variables; return a sentence for what cannot be set here."""
    for name, value in environment["variables"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    folder = environment["folder"]
    if folder is None:
        return []
    try:
        os.chdir(folder)
    except OSError as err:
        return [f"The working directory {folder} was not restored: {err.strerror}."]
    return []


def add_paths(paths: list[str]) -> None:
    """Let modules be found where they were found when they were saved, too."""
    sys.path.extend(path for path in paths if path not in sys.path)


def _is_of_group(name: str) -> bool:
    return name in _OF_GROUPS or name in _OF_DEVICES or name.startswith(_OF_US)
