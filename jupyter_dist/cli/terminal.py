"""What of the words of ranks and servers may reach a terminal: text and colours, nothing that makes it act."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# In order: colours; commands with text of any length (title, clipboard, links), with their end where it is in sight;
# commands with parameters; the rest of what begins with ESC; single controls, of 7 and of 8 bits, but \t, \n and \r.
_CONTROLS = re.compile(
    r"(\x1b\[[0-9;:]*m)"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\r\n]*(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


def for_terminal(text: str) -> str:
    """The text with colours, and without what else a terminal would obey."""
    return _CONTROLS.sub(lambda found: found[1] or "", text)


class TerminalFile:
    """A text file that is a terminal, given only what may reach one."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write what is left of it."""
        self._file.write(for_terminal(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def guarded_terminal(*, is_raw: bool = False) -> Iterator[None]:
    """Have stdout and stderr be guarded where they are terminals; pipes and files are given all, as it was said."""
    before = sys.stdout, sys.stderr
    if not is_raw:
        sys.stdout, sys.stderr = (TerminalFile(file) if file.isatty() else file for file in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
