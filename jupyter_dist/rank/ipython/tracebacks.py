"""Formats a user's exception as the content of one `error` output."""

from __future__ import annotations

import builtins
import contextlib
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import IPython
from IPython.core.error import UsageError

from jupyter_dist.rank.guard import folders
from jupyter_dist.rank.guard.own import os, traceback

from .ipython_compat import forget_sources

MAX_NAME_CHARACTERS = 200
MAX_MESSAGE_CHARACTERS = 16_000
MAX_TRACEBACK_CHARACTERS = 48_000
MAX_FRAMES = 60
KEPT_FRAMES = 20  # frames kept at each end of a longer traceback
MAX_LINES = 200
MAX_CHAIN = 20  # chained exceptions
KEPT_CHAIN = 8  # exceptions kept at each end of a longer chain

MACHINERY = (
    *folders.ON_RANKS,
    os.path.dirname(os.path.abspath(IPython.__file__)) + os.sep,
)


def error_content(
    shell: Any,
    error: BaseException,
    trace: TracebackType | None,
    bare: bool,
    fold: Callable[[str], str] = lambda text: text,
) -> dict[str, Any]:
    """Return {ename, evalue, traceback}; never raises, even if the methods of the exception do.

    Args:
        shell: the rank's shell, which formats.
        error: the exception.
        trace: its traceback.
        bare: leave the traceback out (the code did not even run, or SystemExit).
        fold: returns a text without the parts that are not to be shown.
    """
    ename = safe_name(error)
    try:
        with _short_chain(error) as num_left_out, _user_parts(error), _cells_have_module(error, trace):
            lines = _lines(shell, error, trace, bare)
            forget_sources(lambda name: not os.path.isfile(name))
        if num_left_out:
            lines.insert(0, f"({num_left_out} more exceptions in between are not shown)\n")
    except BaseException:  # the exception's __str__, __repr__ or fields raised: report it anyway
        lines = [f"{ename}: {safe_message(error)}"]
        with contextlib.suppress(BaseException):
            lines = [*traceback.format_tb(trace)[-MAX_FRAMES:], *lines]
    return {"ename": ename, "evalue": fold(safe_message(error)), "traceback": _cut_lines([*map(fold, lines)])}


def prepare(shell: Any) -> None:
    """Format an error of a collective, before ranks are forked: the first one takes half a second, later ones 0.03 s.

    IPython compiles its lexers, parses torch's source and looks up the file of every module then.
    """
    from torch import distributed as dist

    try:
        dist.all_reduce(None)
    except Exception as err:  # wrong arguments: it computes nothing
        error_content(shell, err, err.__traceback__, bare=False)


def name_cells_in_warnings(shell: Any) -> None:
    """Make warnings name a cell as tracebacks do, and not by the name of its code, which is no file."""
    plain = warnings.formatwarning

    def formatted(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        text = plain(message, category, filename, lineno, line)
        name = shell.compile.format_code_name(filename)
        return text.replace(f"{filename}:", f"{name[0]} {name[1]}:", 1) if name else text

    warnings.formatwarning = formatted


def safe_name(error: BaseException | None) -> str:
    """Return the name of an error's class, truncated; no code of a metaclass runs."""
    name: str = type.__dict__["__name__"].__get__(type(error))
    return name if len(name) <= MAX_NAME_CHARACTERS else f"{name[:MAX_NAME_CHARACTERS]}\u2026"


def safe_message(error: BaseException) -> str:
    """Return str(error), truncated, or a note that it raised."""
    try:
        return _cut(str(error), MAX_MESSAGE_CHARACTERS)
    except BaseException as err:  # user code: may even raise SystemExit
        return f"<{safe_name(error)}.__str__ raised {safe_name(err)}>"


def _lines(shell: Any, error: BaseException, trace: TracebackType | None, bare: bool) -> list[str]:
    if isinstance(error, UsageError):
        return [f"UsageError: {error}"]
    if isinstance(error, SyntaxError):
        entries = [] if bare else traceback.extract_tb(_user_part(trace)[0])
        return list(shell.SyntaxTB.structured_traceback(type(error), error, entries))
    if bare:
        return list(shell.InteractiveTB.get_exception_only(type(error), error))
    if hasattr(error, "_render_traceback_"):
        return list(error._render_traceback_())
    trace, num_left_out = _user_part(trace)
    if _has_group(error):
        return traceback.format_exception(type(error), error, trace)
    lines = list(shell.InteractiveTB.structured_traceback(type(error), error, trace, tb_offset=0))
    if num_left_out:
        lines.insert(-1, f"({num_left_out} more frames in between are not shown)\n")
    return lines


@contextlib.contextmanager
def _short_chain(error: BaseException) -> Iterator[int]:
    """Shorten a long chain, because formatting takes milliseconds per exception; yield how many are left out."""
    chain = _chain(error)
    if len(chain) <= MAX_CHAIN:
        yield 0
        return
    last = chain[KEPT_CHAIN - 1]
    cause, context, suppressed = last.__cause__, last.__context__, last.__suppress_context__
    try:
        last.__cause__, last.__context__ = None, chain[-KEPT_CHAIN]
        last.__suppress_context__ = False
        yield len(chain) - 2 * KEPT_CHAIN
    finally:
        last.__cause__, last.__context__, last.__suppress_context__ = cause, context, suppressed


@contextlib.contextmanager
def _user_parts(error: BaseException) -> Iterator[None]:
    """Leave IPython's and our frames out of the errors behind an error, too."""
    chained = [(each, each.__traceback__) for each in _chain(error)[1:]]
    try:
        for each, trace in chained:
            each.__traceback__ = _user_part(trace)[0] or trace
        yield
    finally:
        for each, trace in chained:
            each.__traceback__ = trace


@contextlib.contextmanager
def _cells_have_module(error: BaseException, trace: TracebackType | None) -> Iterator[None]:
    """Set the modules of a traceback's cells in `inspect`, which would search thousands of modules several times."""
    files = {name for step in (trace, *(each.__traceback__ for each in _chain(error))) for name in _files(step)}
    known: dict[str, str] | None = getattr(inspect, "modulesbyfile", None)  # not documented
    # IPython asks the module for its name, which a cell may have deleted.
    if known is None or not hasattr(sys.modules.get("__main__"), "__name__"):
        yield
        return
    cells = {name for name in files if not os.path.isfile(name)}
    with contextlib.suppress(OSError):  # the current folder was deleted
        cells |= {os.path.abspath(name) for name in cells}
    new = cells - known.keys()
    known.update(dict.fromkeys(new, "__main__"))
    try:
        yield
    finally:
        for name in new:
            known.pop(name, None)


def _files(trace: TracebackType | None) -> set[str]:
    found = set()
    while trace is not None:
        found.add(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return found


def _chain(error: BaseException) -> list[BaseException]:
    """Return the exceptions that are shown with an error, from the error back to the first one."""
    chain: dict[int, BaseException] = {}
    following: BaseException | None = error
    while following is not None and id(following) not in chain:
        chain[id(following)] = following
        context = None if following.__suppress_context__ else following.__context__
        following = following.__cause__ or context
    return list(chain.values())


def _has_group(error: BaseException | None) -> bool:
    """Whether a chain contains an exception group, which IPython's formatter does not support (from Python 3.11 on)."""
    exception_group = getattr(builtins, "BaseExceptionGroup", ())
    seen = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, exception_group):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _user_part(trace: TracebackType | None) -> tuple[TracebackType | None, int]:
    """Return the traceback without IPython's and our frames, and how many frames were left out."""
    steps = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(MACHINERY):
            steps.append(trace)
        trace = trace.tb_next
    num_left_out = max(0, len(steps) - 2 * KEPT_FRAMES) if len(steps) > MAX_FRAMES else 0
    if num_left_out:
        steps = steps[:KEPT_FRAMES] + steps[-KEPT_FRAMES:]
    return _rebuild(steps), num_left_out


def _rebuild(steps: list[TracebackType]) -> TracebackType | None:
    rebuilt: TracebackType | None = None
    for step in reversed(steps):
        rebuilt = TracebackType(rebuilt, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return rebuilt


def before(trace: TracebackType | None, package: str) -> TracebackType | None:
    """Return a traceback up to the user's call into `package`; the full one if there is none."""
    folder = os.path.dirname(os.path.abspath(sys.modules[package].__file__ or "")) + os.sep
    steps = []
    step = trace
    while step is not None and not step.tb_frame.f_code.co_filename.startswith(folder):
        steps.append(step)
        step = step.tb_next
    if step is None:
        return trace
    reaches_user = any(not entry.tb_frame.f_code.co_filename.startswith(MACHINERY) for entry in steps)
    return _rebuild(steps) if reaches_user else trace


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n... ({len(text) - 2 * half} characters cut) ...\n{text[-half:]}"


def _cut_lines(lines: list[str]) -> list[str]:
    text = "\n".join(lines).split("\n")
    if len(text) > MAX_LINES:
        half = MAX_LINES // 2
        lines = [*text[:half], f"... ({len(text) - 2 * half} lines cut) ...", *text[-half:]]
    if sum(map(len, lines)) > MAX_TRACEBACK_CHARACTERS:
        return _cut("\n".join(lines), MAX_TRACEBACK_CHARACTERS).split("\n")
    return lines
