"""Where an error was raised, read from its traceback: the evidence that it is a library's, and not the user's own."""

from __future__ import annotations

import opcode
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

MAX_CHAIN = 20
_RAISES = frozenset(opcode.opmap[name] for name in ("RAISE_VARARGS", "RERAISE") if name in opcode.opmap)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that it came from, past what their classes have made of the fields."""
    for _ in range(MAX_CHAIN):
        if error is None:
            return
        yield error
        error = _field("__cause__")(error) or _field("__context__")(error)


def steps(error: BaseException) -> Iterator[TracebackType]:
    """Yield the steps of its traceback, outermost first."""
    step: TracebackType | None = _field("__traceback__")(error)
    while step is not None:
        yield step
        step = step.tb_next


def innermost(error: BaseException) -> TracebackType | None:
    """Return the last step of its traceback, where it was raised; None if it has none."""
    step = None
    for step in steps(error):  # noqa: B007
        pass
    return step


def is_raised_by_call(step: TracebackType) -> bool:
    """Whether a function in C or C++ that this frame called raised it, and no `raise` of the frame."""
    code = step.tb_frame.f_code.co_code
    return 0 <= step.tb_lasti < len(code) and code[step.tb_lasti] not in _RAISES


def _field(name: str) -> Callable[[BaseException], Any]:
    """Return what reads a field of an exception, past what its class has made of it."""
    reader: Callable[[BaseException], Any] = BaseException.__dict__[name].__get__
    return reader
