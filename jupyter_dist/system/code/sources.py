"""The Python files of a version of the package, in memory (about 3 MB): read from its folder, or from an archive.

An archive is one file, which a network file system writes and reads faster than 500, and Python runs it:
`python code.zip ROLE ARGUMENT`.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import sys
import zipfile
import zipimport
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from jupyter_dist.system.files.private import make_folder

ARCHIVE = "code.zip"
_NAME = "jupyter_dist"
_PACKAGE = Path(__file__).parents[2]
_ONLY_OF_SERVER = frozenset({"server", "labextension", "server-config"})  # groups and nodes import none of them

# Any Python can read it, and state that it is too old.
_MAIN = """\
import sys
if sys.version_info < (3, 10):
    sys.exit("jupyter dist: jupyter_dist needs Python 3.10 or later; %s is Python %d.%d."
             % ((sys.executable,) + tuple(sys.version_info[:2])))
from jupyter_dist.agent.boot import main
sys.exit(main())
"""


@dataclass(frozen=True)
class Sources:
    """The files by their paths in the package, with what Python has compiled of them."""

    files: Mapping[PurePosixPath, tuple[bytes, int]]  # content, and when it was changed: compiled code names that
    compiled: Mapping[PurePosixPath, bytes] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Return a short hash of the files: the same for the same version, wherever it is installed."""
        contents = sorted((str(name), hashlib.sha256(content).digest()) for name, (content, _) in self.files.items())
        return hashlib.sha256(repr(contents).encode()).hexdigest()[:12]

    def archive(self) -> bytes:
        """Return the archive of the files, without compiled code: 1 MB."""
        found = io.BytesIO()
        with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo("__main__.py"), _MAIN)
            for name, (content, changed_ns) in self.files.items():
                entry = zipfile.ZipInfo(f"{_NAME}/{name}")
                entry.compress_type, entry.comment = zipfile.ZIP_DEFLATED, str(changed_ns).encode()
                archive.writestr(entry, content)
        return found.getvalue()

    def write(self, folder: Path) -> None:
        """Write the package into a new folder. Raises OSError."""
        package = folder / _NAME
        for name, (content, changed_ns) in self.files.items():
            make_folder((package / name).parent)
            (package / name).write_bytes(content)
            os.utime(package / name, ns=(changed_ns, changed_ns))
        for name, content in self.compiled.items():
            make_folder((package / name).parent)
            (package / name).write_bytes(content)

    def are_in(self, folder: Path) -> bool:
        """Whether the folder has all files, unchanged."""
        package = folder / _NAME
        try:
            return all((package / name).read_bytes() == content for name, (content, _) in self.files.items())
        except OSError:
            return False


def own_archive() -> Path | None:
    """Return the archive that this process runs, if it runs one."""
    loader = getattr(sys.modules[__name__], "__loader__", None)
    return Path(loader.archive) if isinstance(loader, zipimport.zipimporter) else None


def own_sources() -> Sources:
    """Return the files of the package that this process runs. Raises OSError."""
    archive = own_archive()
    return _of_folder(_PACKAGE.resolve()) if archive is None else _of_archive(archive)


def _of_archive(path: Path) -> Sources:
    files = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                name = PurePosixPath(entry.filename)
                if name.parts[0] == _NAME:
                    files[name.relative_to(_NAME)] = archive.read(entry), int(entry.comment)
    except (zipfile.BadZipFile, ValueError) as err:
        raise OSError(f"{path} is damaged: {err}") from err
    return Sources(files)


def _of_folder(package: Path) -> Sources:
    paths = [
        path for path in sorted(package.rglob("*.py")) if path.relative_to(package).parts[0] not in _ONLY_OF_SERVER
    ]
    compiled = {}
    for path in paths:
        for found in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            with contextlib.suppress(OSError):  # being replaced right now
                compiled[PurePosixPath(found.relative_to(package))] = found.read_bytes()
    files = {PurePosixPath(path.relative_to(package)): (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}
    return Sources(files, compiled)
