"""A shell whose names are saved and restored: IPython's own, without the rest of a rank."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from jupyter_dist.rank.state import reading, writing
from jupyter_dist.rank.state.process import beside

WRITING = writing.WriteOptions(rank=0, world_size=1, durable=False)
READING = reading.ReadOptions(rank=0, world_size=1)


class Shell:
    """Runs cells, saves and restores."""

    def __init__(self, folder: Path) -> None:
        config = Config()
        config.HistoryManager.enabled = False
        config.HistoryManager.hist_file = ":memory:"
        InteractiveShell.clear_instance()
        self.module = ModuleType("__main__")
        self.shell = InteractiveShell.instance(config=config, user_module=self.module)
        self.folder = folder
        beside.remember(self.shell)
        self.names: dict[str, Any] = self.shell.user_ns

    def run(self, code: str) -> None:
        self.shell.run_cell(code, store_history=True).raise_error()

    def save(self) -> writing.WrittenNames:
        return writing.write_namespace(self.shell, str(self.folder), str(self.folder), WRITING)

    def preview(self) -> writing.WrittenNames:
        return writing.preview(self.shell)

    def load(self) -> reading.LoadedNames:
        return reading.load(self.shell, str(self.folder), str(self.folder / "rank-0.json"), READING)

    def restore(self) -> reading.Restored:
        return self.load().commit()


def restored(before: Shell) -> Shell:
    """Save, and restore in a shell without names."""
    before.save()
    after = Shell(before.folder)
    after.restore()
    return after


def main(argv: list[str]) -> None:
    """Restore in this process, which is new, and run code there."""
    folder, code = argv
    shell = Shell(Path(folder))
    shell.restore()
    shell.run(code)


if __name__ == "__main__":
    main(sys.argv[1:])
