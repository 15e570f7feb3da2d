"""`TORCH_LOGS` set by a cell: torch reads it when it is imported, which a rank has done before its first cell."""

from __future__ import annotations

import sys

from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.guard.own import os

_NAMES = ("TORCH_LOGS", "TORCH_LOGS_OUT", "TORCH_TRACE")


class TorchLogs:
    """Has torch read these variables again before the statement that follows a change."""

    def __init__(self) -> None:
        self._read = self._values()

    def apply(self) -> None:
        """Called before each statement of a cell."""
        values = self._values()
        if values == self._read:
            return
        self._read = values
        if any(values) and (problem := torch_compat.read_log_settings()):
            sys.stderr.write(f"TORCH_LOGS has no effect in this rank: {problem}\n")

    def _values(self) -> list[str | None]:
        return [os.environ.get(name) for name in _NAMES]
