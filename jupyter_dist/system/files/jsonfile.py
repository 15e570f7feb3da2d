"""Reads a small JSON file, whatever is at its path."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

MAX_BYTES = 1 << 20


def read_json(path: Path, max_bytes: int = MAX_BYTES) -> Any:
    """Return the content of a JSON file: its values may be of any type.

    Raises:
        OSError: it cannot be read, or is a link, a pipe or a folder.
        ValueError: it is no JSON, has too many levels, or is too long.
    """
    # Non-blocking: to open a pipe would wait for its other end.
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a file", str(path))
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        message = f"it has more than {max_bytes} bytes"
        raise ValueError(message)
    try:
        return json.loads(content)
    except RecursionError:
        message = "it has too many levels"
        raise ValueError(message) from None
