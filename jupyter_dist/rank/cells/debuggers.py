"""Keeps Python's debuggers (pdb, ipdb, IPython's) in the user's code: they neither stop in our frames nor show them.

IPython compiles each statement of a cell on its own, and runs it from its own code, below which is ours. A debugger
would show all these frames, and step from a statement into them. Here it steps to the cell's next statement, and its
tracing ends with the cell. All debuggers derive from `bdb.Bdb`, whose methods are replaced once; nothing runs without a
debugger.
"""

from __future__ import annotations

import bdb
import pdb
import sys
from types import FrameType
from typing import Any

from IPython.core import debugger as ipythons

from jupyter_dist.rank.cells.interrupt import Interrupter
from jupyter_dist.rank.guard.own import asyncio, threading
from jupyter_dist.rank.ipython import tracebacks
from jupyter_dist.rank.ipython.cellnames import readable

INTERRUPTIBLE = True  # the user's code and a debugger's prompt run below these functions on the stack

_SENT_ON = ("dispatch_line", "dispatch_exception", "dispatch_opcode")  # the last one from Python 3.13 on


class Debuggers:
    """Knows which frames are the user's."""

    def __init__(self, namespace: dict[str, Any], interrupter: Interrupter) -> None:
        self._namespace = namespace
        self._interrupter = interrupter
        self._main = threading.main_thread()
        self._tracing: Any = None  # the debugger that was begun last
        self._has_stopped = False  # since then
        self._statement: FrameType | None = None  # of the cell, which it has traced last
        self._original = {name: getattr(bdb.Bdb, name) for name in (*_SENT_ON, *_REPLACED) if hasattr(bdb.Bdb, name)}

    def install(self) -> None:
        """Replace the methods of all debuggers."""
        for name, original in self._original.items():
            new = getattr(self, f"_{name}", None) or self._past_ours(original)
            setattr(bdb.Bdb, name, _method(new))
        for kind in (bdb.Bdb, ipythons.Pdb):
            kind.format_stack_entry = _readable(kind.format_stack_entry)  # type: ignore[method-assign]

    def end_cell(self) -> None:
        """Stop tracing: the next cell runs at full speed, and no debugger stops between cells."""
        debugger, self._tracing, self._statement = self._tracing, None, None
        if debugger is None:
            return
        if isinstance(getattr(sys.gettrace(), "__self__", None), bdb.Bdb):  # after pdb's `debug`, not the last one
            sys.settrace(None)
        if getattr(debugger, "monitoring_tracer", None) is not None:  # Python 3.14, if the user chose that
            debugger.stop_trace()
        debugger.clear_all_breaks()  # breakpoints in functions would stop later cells from Python 3.14 on
        if hasattr(pdb.Pdb, "_last_pdb_instance"):  # Python 3.14: the next `breakpoint()` would reuse it,
            pdb.Pdb._last_pdb_instance = None  # be it ipdb, and it would keep this cell's variables alive
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            frame.f_trace = None
            frame = frame.f_back

    # -- methods of bdb.Bdb --------------------------------------------------------------------------

    def _reset(self, debugger: Any) -> None:
        self._tracing, self._has_stopped = debugger, False
        if getattr(debugger, "mode", None) == "inline":  # `breakpoint()` and `pdb.set_trace()` from Python 3.14 on
            debugger.mode = None  # else `quit` asks whether to kill the process; here it ends the cell
            # Traced as older Pythons do: sys.monitoring allows one debugger only, and JupyterLab's may be there.
            debugger.backend, debugger.monitoring_tracer = "settrace", None
        self._original["reset"](debugger)

    def _stop_here(self, debugger: Any, frame: FrameType) -> bool:
        return bool(self._original["stop_here"](debugger, frame)) and self._is_in_cell(frame)

    def _get_stack(self, debugger: Any, frame: FrameType | None, trace: Any) -> tuple[list[tuple[FrameType, int]], int]:
        """Return the user's frames, from the cell inwards, and the index of the current one."""
        self._has_stopped = True
        stack, index = self._original["get_stack"](debugger, frame, trace)
        calls = self._interrupter.calls_user_code
        first = next((number for number, (each, _) in enumerate(stack) if calls(each)), 0)
        kept = [number for number in range(first, len(stack)) if not _is_ours(stack[number][0])]
        if not kept:
            return stack, index
        self._statement = next((stack[number][0] for number in kept if self._is_statement(stack[number][0])), None)
        return [stack[number] for number in kept], max(0, sum(number <= index for number in kept) - 1)

    def _dispatch_call(self, debugger: Any, frame: FrameType, arg: Any) -> Any:
        if debugger.botframe is None:
            return self._original["dispatch_call"](debugger, frame, arg)
        if _is_ours(frame):
            return None
        if not self._is_statement(frame):
            return self._original["dispatch_call"](debugger, frame, arg)
        if frame is not self._statement:
            self._statement = frame
            self._step_on(debugger, frame)
        stops = debugger.stop_here(frame) or debugger.break_anywhere(frame) or debugger.stoplineno > 0
        return debugger.trace_dispatch if stops else None

    def _dispatch_return(self, debugger: Any, frame: FrameType, arg: Any) -> Any:
        """Step to the next statement, unless this statement is only `breakpoint()`."""
        if _is_ours(frame):
            return debugger.trace_dispatch
        if not self._is_statement(frame):
            return self._original["dispatch_return"](debugger, frame, arg)
        if not self._has_stopped and hasattr(debugger, "interaction") and debugger.stop_here(frame):
            debugger.interaction(frame, None)
            if debugger.quitting:
                raise bdb.BdbQuit
        return debugger.trace_dispatch

    @staticmethod
    def _step_on(debugger: Any, frame: FrameType) -> None:
        """Stop in a new statement of the cell: the frame of the last `next`, `until` or `return` command has ended."""
        until = debugger.stoplineno
        if debugger.stopframe is None or until == -1:  # `step` stops anyway, and `continue` does not
            return
        if until > 0:
            debugger.set_until(frame, until)
        else:
            debugger.set_step()

    @staticmethod
    def _past_ours(original: Any) -> Any:
        def dispatch(debugger: Any, frame: FrameType, *arg: Any) -> Any:
            return debugger.trace_dispatch if _is_ours(frame) else original(debugger, frame, *arg)

        return dispatch

    # -- frames --------------------------------------------------------------------------------------

    def _is_in_cell(self, frame: FrameType | None) -> bool:
        """Whether a frame is, or was called by, a cell's code, task or thread; False for frames that our code calls."""
        if threading.get_ident() != self._main.ident:
            return True
        first = frame
        while frame is not None:
            if self._interrupter.calls_user_code(frame):
                return True
            if _is_ours(frame):
                return False
            if frame is not first and frame.f_code.co_filename == asyncio.events.__file__:
                return True
            frame = frame.f_back
        return False

    def _is_statement(self, frame: FrameType) -> bool:
        """Whether a frame is a statement of a cell, which IPython calls."""
        is_cells = frame.f_globals is self._namespace and frame.f_code.co_name == "<module>"
        return is_cells and frame.f_back is not None and _is_ours(frame.f_back)


_REPLACED = ("reset", "stop_here", "get_stack", "dispatch_call", "dispatch_return")


def at_prompt() -> bool:
    """Whether a debugger's prompt calls this."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "cmdloop" and isinstance(frame.f_locals.get("self"), bdb.Bdb):
            return True
        frame = frame.f_back
    return False


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(tracebacks.MACHINERY)


def _readable(original: Any) -> Any:
    """Return a method that describes a line of the stack, with the names of cells as in tracebacks."""

    def format_stack_entry(debugger: Any, *args: Any, **options: Any) -> str:
        return readable(original(debugger, *args, **options))

    return format_stack_entry


def _method(function: Any) -> Any:
    """Return a function that can be a method of a class: a bound method would not receive the debugger."""

    def method(debugger: Any, *args: Any) -> Any:
        return function(debugger, *args)

    return method
