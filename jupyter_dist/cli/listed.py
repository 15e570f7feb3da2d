"""A command of `jupyter dist`, which is not imported before it is run."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Listed:
    """The path of a command's class, a subclass of Command, and its line in the help."""

    path: str
    text: str

    def load(self) -> Any:
        """Return the class of the command."""
        module, _, name = self.path.rpartition(".")
        return getattr(importlib.import_module(module), name)
