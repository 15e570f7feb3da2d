"""The requirements of ranks on a Python, with a sentence for each that is missing or too old.

The minimum versions are the oldest that docs/compatibility.md lists as tested.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from jupyter_dist.protocol.models.sentences import join, say

Version = tuple[int, int]

MIN_PYTHON: Version = (3, 10)
MIN_TORCH: Version = (2, 5)
MIN_IPYTHON: Version = (8, 6)

_PACKAGES = {"torch": MIN_TORCH, "ipython": MIN_IPYTHON}


def problem(python: str, found: Mapping[str, Any]) -> str | None:
    """Return why ranks cannot run there, and what to do; None if they can.

    Args:
        python: the interpreter.
        found: what probe.py printed there.
    """
    if said := found.get("problem"):
        return cast("str", said)
    version = _numbers(str(found.get("python_version")))
    if version is None or version < MIN_PYTHON:
        has, wanted = found.get("python_version"), _dotted(MIN_PYTHON)
        return say("%1 is Python %2; ranks need %3 or newer. Choose another Python.", python, str(has), wanted)
    return _of_packages(python, found)


def _of_packages(python: str, found: Mapping[str, Any]) -> str | None:
    missing = [name for name in _PACKAGES if found.get(f"{name}_version") is None]
    if missing:
        command = _pip(python, *(f'"{name}>={_dotted(_PACKAGES[name])}"' for name in missing))
        return say("%1 has no %2; run '%3'.", python, join(*missing, by=" and "), command)
    for name, least in _PACKAGES.items():
        text = str(found[f"{name}_version"])
        version = _numbers(text)
        if version is not None and version < least:
            command = _pip(python, "--upgrade", f'"{name}>={_dotted(least)}"')
            has = f"{name} {text}"
            return say("%1 has %2; ranks need %3 or newer: run '%4'.", python, has, _dotted(least), command)
    return None


def _pip(python: str, *arguments: str) -> str:
    return f"{python} -m pip install {' '.join(arguments)}"


def _numbers(version: str) -> Version | None:
    """Return the first two numbers of a version ("2.13.0+cpu", "2.9.0a0+git1234"); None if there are none."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return None if match is None else (int(match[1]), int(match[2]))


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))
