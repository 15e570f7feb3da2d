"""Rejects a JSON text that the agent cannot read: its Python has the usual limits, whatever a cell has set here."""

from __future__ import annotations

import re
from itertools import accumulate

MAX_DEPTH = 200  # of lists and dictionaries in each other: Python's parser takes fewer than 1000
MAX_DIGITS = 4000  # of a number: int() takes 4300

_STRING = re.compile(rb'"[^"]*"')
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (MAX_DIGITS + 1))
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = [1 if byte in b"[{" else -1 for byte in range(256)]


def check_readable(text: bytes) -> None:
    """Raise ValueError, with a message for the user, if the agent could not read this JSON text."""
    bare = _STRING.sub(b"", text.replace(b"\\\\", b"").replace(b'\\"', b""))
    brackets = bare.translate(None, _NO_BRACKETS)
    if len(brackets) > 2 * MAX_DEPTH and max(accumulate(map(_STEPS.__getitem__, brackets))) > MAX_DEPTH:
        raise ValueError(f"This has more than {MAX_DEPTH} lists or dictionaries in each other. Send it as text.")
    if len(bare) > MAX_DIGITS and _LONG_NUMBER.search(bare):
        raise ValueError(f"This has a number with more than {MAX_DIGITS} digits. Send it as text.")
