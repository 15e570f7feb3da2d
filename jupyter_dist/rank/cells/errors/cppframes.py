"""Leaves the C++ frames out of an error that torch raised.

They are thousands of characters on every rank, and name no line of the user's. They go to the rank's log; the error's
own sentences stay as they are, and so does the exception itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.guard import origin

NOTE = "C++ frames: in the rank's log"
_ASKED_FOR = "TORCH_SHOW_CPP_STACKTRACES"  # a user who sets it wants to see them

# The exceptions of torch's C++ code: it maps its own to some of Python's classes.
_TYPES = frozenset(
    (
        *(RuntimeError, IndexError, ValueError, TypeError, NotImplementedError),
        *torch_compat.DEVICE_ERRORS,
        torch_compat.OutOfMemoryError,
    )
)
_FRAMES = re.compile(
    r"^Exception raised from [^\n]* \(most recent call first\):"
    r"(?:\n(?:frame #\d+: |#\d+ |<omitting python frames>|C\+\+ CapturedTraceback:)[^\n]*)+",
    re.MULTILINE,
)


def find(error: BaseException | None, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the messages with C++ frames of this error and of its causes, if torch's C++ raised them."""
    if environment.get(_ASKED_FOR) == "1":
        return []
    return [text for text in map(_message, origin.chain(error)) if _FRAMES.search(text)]


def fold(messages: list[str], text: str) -> str:
    """Return a text in which the frames of these messages are left out."""
    for message in messages:
        for frames in _FRAMES.findall(message):
            text = text.replace(frames, NOTE)
    return text


def _message(error: BaseException) -> str:
    step = origin.innermost(error) if type(error) in _TYPES else None
    if step is None or not origin.is_raised_by_call(step):
        return ""
    try:
        return str(error)
    except Exception:  # an argument of the user's
        return ""
