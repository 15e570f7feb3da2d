"""The file `rank-N.json`: what this rank had, and in which chunks it is."""

from __future__ import annotations

import contextlib
import hashlib
import platform
import sys
from collections.abc import Sequence
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.rank.guard.own import json, os
from jupyter_dist.system.files.owned import OwnFolder
from jupyter_dist.version import __version__

from .chunks import write_file

FORMAT = 1

Manifest = dict[str, Any]


def versions() -> dict[str, str]:
    """Return the versions on which it depends whether it can be read."""
    found = {"python": platform.python_version(), "jupyter_dist": __version__}
    for package in ("torch", "numpy"):
        module = sys.modules.get(package)
        if module is not None:
            found[package] = str(module.__version__)
    return found


def write(path: str, manifest: Manifest, durable: bool) -> str:
    """Write the manifest of a rank, and return its hash."""
    data = json.dumps(manifest, separators=(",", ":")).encode()
    write_file(path, memoryview(data), durable)
    return hashlib.sha256(data).hexdigest()


def read(folder: OwnFolder, *names: str) -> Manifest:
    """Return the manifest of a rank.

    Raises:
        JupyterDistError: `cannot_restore`; the file is missing or damaged, or is of a newer version of this package.
            `not_yours`.
    """
    name = names[-1]
    try:
        manifest = json.loads(_bytes_of(folder, names))
        if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
            raise ValueError("it is no manifest")
    except (OSError, ValueError) as err:
        message = say("The file %1 of the save cannot be read: %2.", name, err)
        raise JupyterDistError("cannot_restore", message, say("Restore another save: this one is not whole.")) from err
    if manifest["format"] > FORMAT:
        by = manifest.get("versions", {}).get("jupyter_dist", "a newer version")
        message = say(
            "The save has format %1 (written by jupyter_dist %2); this version reads %3.",
            manifest["format"],
            by,
            FORMAT,
        )
        raise JupyterDistError("cannot_restore", message, say("Update jupyter_dist, then restore it."))
    return manifest


def process_groups(folder: OwnFolder, *names: str) -> list[Any]:
    """Return the plans of process groups in a manifest, which most often has none. Raises as above."""
    with contextlib.suppress(OSError):  # `read` raises the error for it
        if _NO_GROUPS in _bytes_of(folder, names):  # in a text, its quotes would be escaped
            return []
    return list(read(folder, *names)["process_groups"])


_NO_GROUPS = b'"process_groups":[]'


def _bytes_of(folder: OwnFolder, names: Sequence[str]) -> bytes:
    fd = folder.open(*names)
    try:
        return b"".join(iter(lambda: os.read(fd, 1 << 20), b""))
    finally:
        os.close(fd)
