"""Distinguishes the failures of collectives from all other errors: by where they were raised, not by their messages.

An error of a download can have the same message as an error of gloo. It is a collective's if it was raised in
torch.distributed, or by C++ code with gloo's own mark in front.
"""

from __future__ import annotations

import re
from types import FrameType
from typing import Any, Literal, NamedTuple

from jupyter_dist.protocol.accelerators import BACKENDS
from jupyter_dist.rank.collectives.diagnosis import mainthread
from jupyter_dist.rank.collectives.interruptible import waits
from jupyter_dist.rank.guard import origin
from jupyter_dist.rank.guard.own import os

from . import linkstore, torch_compat

_DISTRIBUTED = os.path.join(mainthread.TORCH, "distributed") + os.sep
# These packages communicate with other processes, not with the process group.
_OTHERS = tuple(os.path.join(_DISTRIBUTED, name) + os.sep for name in ("rpc", "elastic", "launcher"))
# Our modules, which wrap torch's.
_OURS = (waits.__name__, linkstore.__name__, "jupyter_dist.rank.frameworks.meeting")
# gloo and c10d write these texts, which are the only evidence of the cause.
_CLOSED_AFTER_TIMEOUT = "Application timeout caused pair closure"
_OF_GLOO = re.compile(r"\[(enforce fail at )?\S*third_party/gloo/\S+\] ")
_GREETING = re.compile(r"\.? ?GLHF! ?[^\x00-\x7f]*")  # gloo's farewell to a peer
_LOST = (
    "Connection closed by peer",
    "Connection reset by peer",
    "Broken pipe",
    "Too many levels of symbolic links",  # a store of ours that was broken (unhang.py)
    *(sign for backend in BACKENDS.values() for sign in backend.lost_signs),
)
_TIMED_OUT = (
    "Timed out waiting",
    "failed to pass monitoredBarrier",
    _CLOSED_AFTER_TIMEOUT,
    *(sign for backend in BACKENDS.values() for sign in backend.timeout_signs),
)


class Failure(NamedTuple):
    """An error that a collective raised."""

    error: BaseException
    kind: Literal["lost", "timed out", "other"]  # lost: another rank closed its connections
    group: Any  # the process group, as its frames have it; None if they do not
    breaks_all: bool = False  # the default process group must be re-created


def find(error: BaseException | None) -> Failure | None:
    """Return the failure of a collective behind this error: the error itself or one of its causes; None without one."""
    return next((_failure(each) for each in origin.chain(error) if _is_of_a_collective(each)), None)


def is_inside(error: BaseException) -> bool:
    """Whether an error was raised in Python code of torch.distributed."""
    step = origin.innermost(error)
    return step is not None and _is_of_distributed(step.tb_frame.f_code.co_filename)


def without_mark(text: str) -> str:
    """Return the message of an error of gloo without the place in gloo's sources."""
    return _GREETING.sub("", _OF_GLOO.sub("", text))


def _failure(error: BaseException) -> Failure:
    text = str(error)
    # A barrier that timed out has the text of what ended it in its own.
    if any(sign in text for sign in _LOST):
        return Failure(error, "lost", _group_of(error))
    return Failure(error, "timed out" if any(sign in text for sign in _TIMED_OUT) else "other", _group_of(error))


def _is_of_a_collective(error: BaseException) -> bool:
    # The exact types that torch raises: one of the user's may be derived from them.
    step = origin.innermost(error)
    if step is None or type(error) not in (RuntimeError, *torch_compat.ERRORS):
        return False
    if step.tb_frame.f_globals.get("__name__") in _OURS:
        return True
    filename = step.tb_frame.f_code.co_filename
    if filename.startswith(_DISTRIBUTED):
        return _is_of_distributed(filename)
    return origin.is_raised_by_call(step) and _is_marked(error)


def _is_of_distributed(filename: str) -> bool:
    return filename.startswith(_DISTRIBUTED) and not filename.startswith(_OTHERS)


def _is_marked(error: BaseException) -> bool:
    """Whether the error's type or text marks it as a collective's: raised in C++ code that a cell or autograd calls."""
    text = str(error)
    return type(error) in torch_compat.ERRORS or text == _CLOSED_AFTER_TIMEOUT or bool(_OF_GLOO.match(text))


def _group_of(error: BaseException) -> Any:
    """Return the process group of the innermost call that has one, in the frames of torch.distributed."""
    frames = [step.tb_frame for step in origin.steps(error)]
    given = (frame.f_locals["group"] for frame in reversed(frames) if _takes_group(frame))
    return next((found for found in map(torch_compat.group_given, given) if found is not None), None)


def _takes_group(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_DISTRIBUTED) and "group" in frame.f_locals
