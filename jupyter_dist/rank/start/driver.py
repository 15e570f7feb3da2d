"""Whether a device was initialized in this process: ranks that are forked from it could not use the device.

torch records its own initialization, but another library may initialize a device (`torch.__config__.show()` does, too,
without recording it). So the driver is queried, and only if it is loaded already: this module never loads or starts it.
"""

from __future__ import annotations

import ctypes
import os

from jupyter_dist.protocol.accelerators import WITH_DEVICES

_spoiled_by: list[str] = []


def is_initialized() -> bool:
    """Whether a driver that is loaded in this process was started in it."""
    return any(_is_started(*row.driver) for row in WITH_DEVICES if row.driver is not None)


def note(module: str) -> None:
    """Remember the first module whose import has initialized a device; call it after each."""
    if not _spoiled_by and is_initialized():
        _spoiled_by.append(module)


def spoiled_by() -> str:
    """Return the module that has initialized a device, as the beginning of a sentence."""
    return f"importing {_spoiled_by[0]}" if _spoiled_by else "an imported package"


def _is_started(library: str, counts: str, not_started: int) -> bool:
    try:
        count = getattr(ctypes.CDLL(library, mode=os.RTLD_NOLOAD | os.RTLD_NOW), counts)
    except (OSError, AttributeError):  # it is not loaded
        return False
    number = ctypes.c_int()
    return bool(count(ctypes.byref(number)) != not_started)
