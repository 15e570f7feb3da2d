"""Waits for gloo's collectives in slices, so that Python can handle signals and every wait ends.

gloo can lose the end of a wait: a rank dies while gloo's event loop sends to it, the send fails, and the thread in
`UnboundBuffer::waitSend` is never notified; no socket is left to break. Seen with torch 2.13 on loaded machines, about
once in fifty deaths.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from jupyter_dist.rank.collectives import torch_compat

INTERRUPTIBLE = True  # cells run and wait below these functions

SLICE = timedelta(seconds=0.2)
GRACE_SECONDS = 1.0  # gloo reports a broken connection within milliseconds
_UNLIMITED = timedelta(0)
# If a wait for one of these times out, gloo treats the whole group as broken.
_POINT_TO_POINT = ("SEND", "RECV", "RECVANYSOURCE")
_LOST = "Connection closed by peer: gloo did not say how this collective ended."


def install(was_broken: Callable[[float], bool], leave: Callable[[Callable[[], bool]], None]) -> None:
    """Make `Work.wait` wait in slices wherever Python calls it.

    Args:
        was_broken: whether all connections were cut at least that many seconds ago.
        leave: called when an incomplete collective is left, with a function that returns whether it has completed.
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
        if timeout != _UNLIMITED:
            return bool(wait(work, timeout))
        if not torch_compat.is_of_host(work):
            return bool(wait(work))
        if torch_compat.operation_of(work) in point_to_point:
            # Without a timeout gloo would use the connections' timeout, which was for joining (process_group.py).
            group = sys._getframe(1).f_locals.get("group")  # where dist.send() and dist.recv() wait
            return bool(wait(work, torch_compat.timeout_of(group)))
        return _until_complete(wait, work, was_broken, leave)

    return sliced


def _until_complete(
    wait: Callable[..., bool],
    work: Any,
    was_broken: Callable[[float], bool],
    leave: Callable[[Callable[[], bool]], None],
) -> bool:
    try:
        while True:
            try:
                return bool(wait(work, SLICE))
            except RuntimeError as err:  # its own error, or the end of the slice
                _raise_if_of_a_handler(err)
                if work.is_completed():
                    return bool(wait(work))
            if was_broken(GRACE_SECONDS):
                raise RuntimeError(_LOST)
    except BaseException:
        if not work.is_completed():
            leave(work.is_completed)
        raise


def _raise_if_of_a_handler(err: RuntimeError) -> None:
    """Raise the error if a signal handler of the cell has raised it: gloo has no Python frames."""
    if err.__traceback__ is not None and err.__traceback__.tb_next is not None:
        raise err
