"""The unfinished line of one rank's stream, with carriage returns, backspaces and erasing applied like in a terminal.

The TypeScript counterpart is labextension/src/parts/logpanel/model/terminal.ts; both run tests/vectors/terminal.json.
"""

from __future__ import annotations

import re

# A line without end is split into pieces of this many characters, so that units are bounded.
MAX_LINE_CHARS = 16384

_ERASE = re.compile(r"\x1b\[[0-2]?K")
_CONTROLS = re.compile(r"([\r\x08\n]|\x1b\[[0-2]?K)")
_BEGUN = re.compile(r"\x1b(?:\[[0-2]?)?\Z")  # may become an erase with the next chunk
_LONGEST_BEGUN = 3


class LineBuffer:
    """Text in, complete lines out; the result does not depend on how the text was split into chunks."""

    def __init__(self) -> None:
        self.text = ""  # the unfinished line
        self.held = ""  # what follows it and may be the beginning of a control sequence
        self._column: int | None = None  # column of the next character; None: at the end
        self._replaces = False  # the next character replaces the rest of the line

    def feed(self, data: str) -> list[str]:
        """Return the lines that are now complete, each with its newline (or split at the maximum)."""
        if self._may_be_cut(data):
            data = self._hold_back(self.held + data)
        if self._is_plain(data):
            return self._feed_plain(data)
        lines: list[str] = []
        for part in _CONTROLS.split(data):
            if part == "\n":
                lines.append(self.text + "\n")
                self._begin_line()
            elif part == "\r":
                self._return()
            elif part == "\b":
                self._column = max(0, (len(self.text) if self._column is None else self._column) - 1)
            elif _ERASE.fullmatch(part):
                self._erase(part)
            elif part:
                self._write(part)
                lines += self._cut()
        return lines

    def skip(self, data: str, keep: int) -> tuple[str, str]:
        """Split off all but the last `keep` complete lines of `data`: return them and the rest to feed.

        The unfinished line goes with them. Splits off nothing if the text has control characters or overlong lines.
        """
        if self._may_be_cut(data) or not self._is_plain(data):
            return "", data
        end = len(data)
        for _ in range(keep + 1):
            end = data.rfind("\n", 0, end)
            if end < 0:
                return "", data
        skipped = self.text + data[: end + 1]
        if _has_overlong_line(skipped):
            return "", data
        self.reset()
        return skipped, data[end + 1 :]

    def reset(self) -> None:
        """Drop the unfinished line."""
        self.held = ""
        self._begin_line()

    def copy(self) -> LineBuffer:
        """Return a copy of the buffer, in the same state."""
        copied = LineBuffer()
        copied.text, copied.held = self.text, self.held
        copied._column, copied._replaces = self._column, self._replaces
        return copied

    def _begin_line(self) -> None:
        self.text, self._column, self._replaces = "", None, False

    def _feed_plain(self, data: str) -> list[str]:
        *complete, last = (self.text + data).split("\n")
        lines: list[str] = []
        for line in complete:
            self.text = line
            if len(line) > MAX_LINE_CHARS:
                lines += self._cut()
            lines.append(self.text + "\n")
        self.text = last
        return lines + self._cut() if len(last) > MAX_LINE_CHARS else lines

    def _return(self) -> None:
        self._column = 0 if self.text else None
        # Escape sequences take no column, so a line with some cannot be overwritten, only replaced.
        self._replaces = "\x1b" in self.text

    def _write(self, text: str) -> None:
        if self._column is None:
            self.text += text
            return
        end = self._column + len(text)
        rest = "" if self._replaces or "\x1b" in text else self.text[end:]
        self.text = self.text[: self._column] + text + rest
        self._column = end if rest else None
        self._replaces = False

    def _erase(self, sequence: str) -> None:
        if "2" in sequence:
            self.text, self._column = "", None
        elif "1" not in sequence and self._column is not None:
            self.text, self._column = self.text[: self._column], None
        self._replaces = False

    def _is_plain(self, data: str) -> bool:
        """Whether the text only appends to the line and begins new lines."""
        if self._column is not None or "\r" in data or "\b" in data:
            return False
        return "\x1b" not in data or _ERASE.search(data) is None

    def _may_be_cut(self, data: str) -> bool:
        """Whether a control sequence may be split between this chunk and the one before or after it."""
        return bool(self.held) or "\x1b" in data[-_LONGEST_BEGUN:]

    def _hold_back(self, data: str) -> str:
        begun = _BEGUN.search(data)
        self.held = begun[0] if begun else ""
        return data[: begun.start()] if begun else data

    def _cut(self) -> list[str]:
        pieces: list[str] = []
        while self._column is None and len(self.text) > MAX_LINE_CHARS:
            pieces.append(self.text[:MAX_LINE_CHARS])
            self.text = self.text[MAX_LINE_CHARS:]
        return pieces


def _has_overlong_line(text: str) -> bool:
    start = 0
    while len(text) - start > MAX_LINE_CHARS:
        newline = text.rfind("\n", start, start + MAX_LINE_CHARS + 1)
        if newline < 0:
            return True
        start = newline + 1
    return False
