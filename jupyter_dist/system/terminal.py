"""Filters output of ranks and servers for a terminal: text and colors pass, other control sequences do not."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# In order: colors; commands with text of any length (title, clipboard, links), with their end if it is there; commands
# with parameters; other sequences that start with ESC; single controls of 7 and 8 bits, except \t, \n and \r,
# and controls that change the order in which characters are shown, so that a line reads as another one.
_CONTROLS = re.compile(
    r"(\x1b\[[0-9;:]*m)"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\r\n]*(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)


def for_terminal(text: str) -> str:
    """Return the text with colors, but without other control sequences."""
    return _CONTROLS.sub(lambda found: found[1] or "", text)


def as_text(text: str) -> str:
    """Return the text without colors and all other control sequences, for programs whose windows may be terminals."""
    return _CONTROLS.sub("", text)


class TerminalFile:
    """A terminal as a text file, which gets only filtered text."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write the filtered text."""
        self._file.write(for_terminal(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def filtered(file: Any) -> Any:
    """Return the file; for a terminal, return a file that filters the text written to it."""
    is_terminal = getattr(file, "isatty", lambda: False)()  # programs replace stdout by whatever has `write`
    return TerminalFile(file) if is_terminal and not isinstance(file, TerminalFile) else file


@contextmanager
def guarded_terminal(*, is_raw: bool = False) -> Iterator[None]:
    """Filter stdout and stderr if they are terminals; pipes and files get the unchanged output."""
    before = sys.stdout, sys.stderr
    if not is_raw:
        sys.stdout, sys.stderr = map(filtered, before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
