"""The paths in a folder of saves, and the names that saves can have.

A folder has `chunks`, which all of its saves share, and a folder for each save. A save exists if its `save.json` does,
which is written last and replaced at once: whatever ends a process, there is the save as it was, or the new one.

    chunks/ab/abcd...           tensors and other large data, named by their hash
    saves/NAME/save.json        describes the save, and names ID
    saves/NAME/ID/index-0.json  for each rank: its chunks, the names that were left out, and the checksum of
    saves/NAME/ID/rank-0.json   its names
    lock                        shared by saves and restores that run, exclusive for what removes chunks
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.wire.requests import MAX_SAVE_NAME

SAVE_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}"
SAVE_ID = r"[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?"
TOKEN = "token"  # noqa: S105  (a file with a random text, by which ranks recognize the folder)
# What is in the folder with the files of the ranks. Anything else there is not ours, and is never removed.
CONTENT_FILE = rf"{TOKEN}|(index|rank)-\d{{1,6}}\.json"


@dataclass(frozen=True)
class SavesFolder:
    """A folder of saves."""

    path: Path

    @property
    def chunks(self) -> Path:
        """Return the folder of chunks."""
        return self.path / "chunks"

    @property
    def saves(self) -> Path:
        """Return the folder that has a folder for each save."""
        return self.path / "saves"

    @property
    def lock(self) -> Path:
        """Return the file that is locked."""
        return self.path / "lock"

    def record(self, name: str) -> Path:
        """Return the path of the save.json of a save."""
        return self.saves / name / "save.json"

    def content(self, name: str, save_id: str) -> Path:
        """Return the folder with the files of the ranks."""
        return self.saves / name / save_id


def make_save_id(text: str) -> str:
    """Return the id of a save from the id of its execution."""
    return re.sub("[^a-z0-9]+", "-", text.lower())[-50:].strip("-") or "save"


def check_name(name: str) -> str:
    """Return the name of a save. Raises JupyterDistError `bad_request` if it cannot be one."""
    if not re.fullmatch(SAVE_NAME, name):
        hint = say("Use up to %1 letters, digits, '_', '.' and '-', starting with a letter or a digit.", MAX_SAVE_NAME)
        raise bad_request(say("A save cannot be called '%1'.", name[:120]), hint)
    return name


def index_file(rank: int) -> str:
    """Return the name of a rank's index."""
    return f"index-{rank}.json"
