"""Waiting for gloo's collectives in slices, so that Python has its turn, and the wait an end.

gloo can lose the end of what it waits for: a rank dies while gloo's event loop sends to it, the send fails, and
nobody tells the thread in `UnboundBuffer::waitSend`; no socket is left to break. Seen in torch 2.13 on loaded
machines, about once in fifty deaths.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from . import torch_compat

INTERRUPTIBLE = True  # cells run and wait below these functions

SLICE = timedelta(seconds=0.2)
GRACE_SECONDS = 1.0  # gloo tells of a broken connection within milliseconds
_UNLIMITED = timedelta(0)
# gloo takes a wait for one of these that timed out for the end of the whole group.
_POINT_TO_POINT = ("SEND", "RECV", "RECVANYSOURCE")
_LOST = "Connection closed by peer: gloo did not say how this collective ended."


def install(was_broken: Callable[[float], bool], leave: Callable[[Callable[[], bool]], None]) -> None:
    """Have `Work.wait` wait like this, wherever Python calls it.

    Args:
        was_broken: whether all connections were cut at least so many seconds ago.
        leave: called when a collective is left that is not complete, with what tells whether it is.
    """
    point_to_point = torch_compat.operations(*_POINT_TO_POINT)
    if point_to_point is not None:
        torch_compat.replace_wait(lambda wait: _sliced(wait, point_to_point, was_broken, leave))


def _sliced(
    wait: Callable[..., bool],
    point_to_point: set[int],
    was_broken: Callable[[float], bool],
    leave: Callable[[Callable[[], bool]], None],
) -> Callable[..., bool]:
    @functools.wraps(wait)
    def sliced(work: Any, timeout: timedelta = _UNLIMITED) -> bool:
        if timeout != _UNLIMITED or torch_compat.operation_of(work) in point_to_point:
            return bool(wait(work, timeout))
        try:
            while True:
                try:
                    return bool(wait(work, SLICE))
                except RuntimeError:  # its own, or the end of the slice
                    if work.is_completed():
                        return bool(wait(work))
                if was_broken(GRACE_SECONDS):
                    raise RuntimeError(_LOST)
        except BaseException:
            if not work.is_completed():
                leave(work.is_completed)
            raise

    return sliced
