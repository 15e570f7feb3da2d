"""Limits the growth of a log on disk: an error that another process causes many times is written a few times."""

from __future__ import annotations

import logging
from collections import Counter

IN_FULL = 10
MAX_TEXT = 4000
MAX_PLACES = 1000  # lines of code whose records are counted


class Sparing(logging.Filter):
    """Passes the first records of a line of code, then the 16th, 32nd, 64th ... one, with its number."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: Counter[tuple[object, ...]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write a record; a long one is cut."""
        place = _place(record)
        if place not in self._counts and len(self._counts) >= MAX_PLACES:
            return False
        self._counts[place] += 1
        count = self._counts[place]
        if count > IN_FULL and count & (count - 1):
            return False
        text = record.getMessage()
        if len(text) > MAX_TEXT:
            text = f"{text[:MAX_TEXT]} [{len(text) - MAX_TEXT} more characters]"
        record.msg, record.args = (text if count <= IN_FULL else f"{text} [this was logged {count} times]"), None
        return True


def log_sparingly(level: int = logging.WARNING) -> None:
    """Write the log of this process to stderr, sparingly."""
    logging.basicConfig(level=level, format="%(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(Sparing())


def _place(record: logging.LogRecord) -> tuple[object, ...]:
    """Return the line of code that logs, and the line that raised the logged exception."""
    kind, _, traceback = record.exc_info or (None, None, None)
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    raised = None if traceback is None else (traceback.tb_frame.f_code.co_filename, traceback.tb_lineno)
    return record.pathname, record.lineno, kind, raised
