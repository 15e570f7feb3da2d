"""The files that this process has loaded, and whether they have changed since: an upgrade must not mix versions."""

from __future__ import annotations

import os
import site
import sys
import time
from pathlib import Path

Stamp = tuple[int, int, int] | None  # None: there is no such file


class LoadedFiles:
    """The loaded files of this process. Create it before the imports; call `remember` after these and later ones."""

    def __init__(self) -> None:
        self._began_ns = time.time_ns()
        self._changed_meanwhile: str | None = None
        self._stamps: dict[str, Stamp] = {}

    def remember(self) -> None:
        """Remember the files of modules and libraries, and the folders of packages, as they are."""
        ended_ns = time.time_ns()
        for path in {*_modules(), *_mapped(), *_places()}:
            self._stamps.setdefault(path, _stamp(path))  # of the first time: the loaded version
            is_gone = path.endswith(" (deleted)")  # as the kernel writes it
            if path not in _places() and (is_gone or self._began_ns <= _changed_ns(path) <= ended_ns):
                self._changed_meanwhile = path

    def why_changed(self) -> str | None:
        """Return a sentence on a file that changed since it was loaded, or None. Takes some milliseconds."""
        if self._changed_meanwhile is not None:
            return f"{self._changed_meanwhile} changed while it was loaded"
        for path, stamp in self._stamps.items():
            if _stamp(path) != stamp:
                return f"{path} changed"
        return None


def _modules() -> set[str]:
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {file for file in files if isinstance(file, str)}


def _mapped() -> set[str]:
    """Return the program and its shared libraries."""
    lines = Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if line.count("/")}
    return {path for path in paths if path.startswith("/") and not path.startswith(("/dev/", "/memfd:", "/SYSV"))}


def _places() -> set[str]:
    """Return the folders in which packages may add imports to each start of Python, and the environment's file."""
    return {*site.getsitepackages(), site.getusersitepackages(), os.path.join(sys.prefix, "pyvenv.cfg")}


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_ctime_ns
    except OSError:
        return 0
