"""The FileStores over which ranks meet: each used once."""

from __future__ import annotations

import contextlib
from pathlib import Path


class Stores:
    """Files in the group's directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._number = 0

    def new(self) -> Path:
        """A path that no process group has used: a stale file breaks the next."""
        before = self.current()
        self._number += 1
        for stale in (before, self.current()):
            stale.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # a full disk: the ranks will say so
            self.current().touch(0o600)  # private, whatever the umask of the ranks that fill it
        return self.current()

    def current(self) -> Path:
        """The one over which ranks met last, or meet now."""
        return self._directory / f"store-{self._number}"
