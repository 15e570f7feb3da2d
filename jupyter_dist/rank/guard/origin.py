"""Where an error was raised, read from its traceback: the evidence that a library raised it, not the user's code."""

from __future__ import annotations

import opcode
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

MAX_CHAIN = 20
_RAISES = frozenset(opcode.opmap[name] for name in ("RAISE_VARARGS", "RERAISE") if name in opcode.opmap)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes; fields are read past overrides of the errors' classes."""
    for _ in range(MAX_CHAIN):
        if error is None:
            return
        yield error
        error = _field("__cause__")(error) or _field("__context__")(error)


def steps(error: BaseException) -> Iterator[TracebackType]:
    """Yield the steps of an error's traceback, outermost first."""
    step: TracebackType | None = _field("__traceback__")(error)
    while step is not None:
        yield step
        step = step.tb_next


def innermost(error: BaseException) -> TracebackType | None:
    """Return the last step of an error's traceback, where it was raised; None if it has no traceback."""
    step = None
    for step in steps(error):  # noqa: B007
        pass
    return step


def is_raised_by_call(step: TracebackType) -> bool:
    """Whether a C or C++ function that this frame called raised the error, and not a `raise` of the frame."""
    code = step.tb_frame.f_code.co_code
    return 0 <= step.tb_lasti < len(code) and code[step.tb_lasti] not in _RAISES


def _field(name: str) -> Callable[[BaseException], Any]:
    """Return a function that reads a field of an exception, past overrides of its class."""
    reader: Callable[[BaseException], Any] = BaseException.__dict__[name].__get__
    return reader
