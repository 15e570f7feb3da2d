"""The FileStores that ranks use for rendezvous, each only once."""

from __future__ import annotations

import contextlib
from pathlib import Path


class Stores:
    """Files in the group's directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._number = 0

    def new(self) -> Path:
        """Return a path that no process group has used: a stale file breaks the next one."""
        before = self.current()
        self._number += 1
        for stale in (before, self.current()):
            stale.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # a full disk: the ranks will report it
            self.current().touch(0o600)  # private, whatever the umask of the ranks that fill it
        return self.current()

    def current(self) -> Path:
        """Return the one in use, or used last."""
        return self._directory / f"store-{self._number}"
