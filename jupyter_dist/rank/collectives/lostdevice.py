"""Recognizes errors after which a rank cannot use its device any more: a device assert, a wild address, a fault.

The process keeps running, and its values on the CPU are whole. But its context on the device is lost: every later call
fails with the same error (seen on an H200), and only another process gets a new context.
"""

from __future__ import annotations

from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.rank.guard import origin

from . import torch_compat

# Without the number of the rank: equal lines of several ranks are folded.
SENTENCE = (
    "This rank's device context is lost: every later call of the device fails like this one. Values on the CPU can"
    " still be pulled. Replace this rank to go on; the other ranks keep their variables."
)
_SIGNS = tuple(sign for row in ACCELERATORS.values() for sign in row.lost_signs)


def is_in(error: BaseException | None) -> bool:
    """Whether this error or one of its causes means that the device is lost. A user's error with that text does not."""
    return any(map(_says_so, origin.chain(error)))


def _says_so(error: BaseException) -> bool:
    if type(error) not in (RuntimeError, *torch_compat.DEVICE_ERRORS):
        return False
    step = origin.innermost(error)
    try:
        text = str(error)
    except Exception:
        return False
    return step is not None and origin.is_raised_by_call(step) and any(sign.search(text) for sign in _SIGNS)
