"""JupyterLab's debugger on a rank: answers Jupyter's debug requests by debugpy's pydevd, in this process (decision 21).

pydevd speaks the Debug Adapter Protocol over a socket pair: no port is opened, no adapter is started. It is imported
when a page asks, in the main thread. Requests about files and state are answered here, in the side thread.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import tempfile
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jupyter_dist.protocol.wire.places import MAX_NAME
from jupyter_dist.protocol.wire.road import Stop
from jupyter_dist.rank.guard import folders
from jupyter_dist.rank.guard.own import json, socket, threading, time
from jupyter_dist.rank.ipython import tracebacks
from jupyter_dist.rank.ipython.displays import encode_content

from .dapmessages import (
    Message,
    Reply,
    is_users,
    messages,
    responder,
    send,
    source_path,
    start_pydevd,
    stop_tracing,
    untraced,
    variable,
)
from .murmur import murmur2

HASH_SEED = 0x6A64  # any number; JupyterLab computes the name of a cell's file with it
MAX_EVENTS = 500
MAX_LINES = 1_000_000  # of a cell
MAX_WAIT_SECONDS = 8.0
LEFT_SECONDS = 40.0  # a page asks for events all the time

_NO_DEBUGPY = "debugpy is not installed in the environment of the ranks. Install it there: pip install debugpy"
_BUSY = "A cell runs on rank {rank}. Enable the debugger when it has ended, or put breakpoint() into the code."
_ENDED = "The debugger of this rank has ended."


@dataclass
class _State:
    """The state of one debugging session."""

    sock: socket.socket
    pending: dict[int, Reply] = field(default_factory=dict)
    breakpoints: dict[str, list[Message]] = field(default_factory=dict)
    stopped: list[int] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    earlier: dict[str, str] = field(default_factory=dict)  # by file: the name of a cell that ran before the debugger


class DebugSession:
    """One debugger of this rank, whatever number of pages use it."""

    def __init__(
        self,
        rank: int,
        place: str,
        shell: Any,
        when_idle: Callable[[Callable[[], None]], None],
        report: Callable[[Stop | None], None],
    ) -> None:
        self.rank = rank
        self._place = place
        self._shell = shell
        self._when_idle = when_idle
        self._report = report  # where the rank is stopped; None: it has gone on. Any thread.
        self._seq = itertools.count(1)
        self._state: _State | None = None
        self._lock = threading.Lock()
        self._events: deque[tuple[int, Message]] = deque(maxlen=MAX_EVENTS)
        self._num_events = 0
        self._waiting: list[tuple[int, Reply, threading.Timer]] = []
        self._folder: str | None = None
        self._compile_name: Any = None
        self._breakpointhook: Any = None
        self._heard_at = 0.0

    @property
    def folder(self) -> str:
        """Return the folder of the files that stand for cells, which all ranks of a machine share."""
        if self._folder is None:
            if os.path.isabs(self._place):
                self._folder = os.path.join(self._place, "cells")
                os.makedirs(self._folder, mode=0o700, exist_ok=True)
            else:  # on a node
                self._folder = tempfile.mkdtemp(prefix="jupyter_dist_cells_")
        return self._folder

    def handle(self, message: Message, is_busy: bool, reply: Reply) -> None:
        """Answer a request of JupyterLab, now or later."""
        self._heard_at = time.monotonic()
        command = str(message.get("command"))
        arguments = message.get("arguments")
        arguments = arguments if isinstance(arguments, dict) else {}
        own = getattr(self, f"_on_{command}", None)
        respond = responder(message, reply)
        if not isinstance(message.get("command"), str):
            respond(False, "The message has no 'command'.", {})
        elif command == "initialize":
            self._begin(message, is_busy, reply)
        elif own is not None:
            own(arguments, is_busy, respond)
        elif self._state is None:
            respond(False, _ENDED, {})
        else:
            self._forward(message, arguments, reply)

    def _begin(self, message: Message, is_busy: bool, reply: Reply) -> None:
        respond = responder(message, reply)

        def attach() -> None:
            try:
                if self._state is None:
                    self._state = self._attach()
                self._forward(message, message.get("arguments") or {}, reply)
            except ImportError:
                respond(False, _NO_DEBUGPY, {})
            except Exception as err:  # pydevd may raise anything
                respond(False, f"The debugger could not be started: {type(err).__name__}: {err}", {})

        if self._state is not None:
            self._forward(message, message.get("arguments") or {}, reply)
        elif is_busy:
            respond(False, _BUSY.format(rank=self.rank), {})
        else:
            self._when_idle(attach)

    def _forward(self, message: Message, arguments: Message, reply: Reply) -> None:
        """Pass a request on to pydevd, with this rank's own thread, and its answer back."""
        state = self._state
        if state is None:
            responder(message, reply)(False, _ENDED, {})
            return
        number, asked = next(self._seq), message.get("seq")
        if "threadId" in arguments and arguments["threadId"] not in state.stopped and state.stopped:
            arguments = {**arguments, "threadId": state.stopped[0]}
        state.pending[number] = lambda answer: reply({**answer, "request_seq": asked, "seq": asked})
        body = {"type": "request", "seq": number, "command": message["command"], "arguments": arguments}
        try:
            send(state.sock, body)
        except OSError:
            state.pending.pop(number, None)
            responder(message, reply)(False, _ENDED, {})

    def _on_attach(self, arguments: Message, _busy: bool, respond: Callable[..., None]) -> None:
        def configured(_: Message) -> None:
            respond(True, "", {})

        def attached(answer: Message) -> None:
            if not answer.get("success"):
                respond(False, answer.get("message", ""), {})
                return
            self._forward({"seq": 0, "command": "configurationDone"}, {}, configured)

        # Without `justMyCode` a step over the end of a statement stops in code that IPython calls.
        options = {
            "justMyCode": True,
            "rules": [{"path": f"{folders.PACKAGE}**", "include": False}],
            "subProcess": False,
        }
        self._forward({"seq": 0, "command": "attach"}, {**arguments, **options}, attached)

    def _on_configurationDone(self, _arguments: Message, _busy: bool, respond: Callable[..., None]) -> None:  # noqa: N802
        respond(True, "", {})

    def _on_dumpCell(self, arguments: Message, _busy: bool, respond: Callable[..., None]) -> None:  # noqa: N802
        code = str(arguments.get("code", ""))
        path = self._file_of(code)
        beside = f"{path}.{os.getpid()}"
        with open(beside, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(code)
        os.replace(beside, path)
        if self._state is not None:
            self._state.paths.add(path)
            self._find_earlier(self._state, code, path)
        respond(True, "", {"sourcePath": path})

    def _find_earlier(self, state: _State, code: str, path: str) -> None:
        """Have pydevd stop in functions of a cell that ran before: they were compiled under IPython's name of it."""
        name = self._shell.compile.names.get(code)
        if name not in (None, path) and path not in state.earlier:
            state.earlier[path] = name
            entry = {"line": 1, "endLine": MAX_LINES, "runtimeLine": 1, "runtimeSource": {"path": name}}
            arguments = {"source": {"path": path}, "pydevdSourceMaps": [entry]}
            self._forward({"seq": 0, "command": "setPydevdSourceMap"}, arguments, lambda _: None)

    def _on_setBreakpoints(self, arguments: Message, _busy: bool, respond: Callable[..., None]) -> None:  # noqa: N802
        state = self._state
        if state is None:
            respond(False, _ENDED, {})
            return
        path = source_path(arguments, self.folder)
        arguments = {**arguments, "source": {**arguments.get("source", {}), "path": path}}

        def done(answer: Message) -> None:
            body = answer.get("body") or {}
            if answer.get("success"):
                state.breakpoints[path] = [{"line": point["line"]} for point in body["breakpoints"] if "line" in point]
            respond(bool(answer.get("success")), answer.get("message", ""), body)

        self._forward({"seq": 0, "command": "setBreakpoints"}, arguments, done)

    def _on_source(self, arguments: Message, _busy: bool, respond: Callable[..., None]) -> None:
        path = source_path(arguments, self.folder)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                respond(True, "", {"content": file.read(200_000)})
        except OSError:
            respond(False, "source unavailable", {})

    def _on_stackTrace(self, arguments: Message, _busy: bool, respond: Callable[..., None]) -> None:  # noqa: N802
        def done(answer: Message) -> None:
            body = answer.get("body") or {"stackFrames": []}
            body["stackFrames"] = self._users(body.get("stackFrames", []))
            body["totalFrames"] = len(body["stackFrames"])
            respond(bool(answer.get("success")), answer.get("message", ""), body)

        self._forward({"seq": 0, "command": "stackTrace"}, {**arguments, "startFrame": 0, "levels": 0}, done)

    def _on_variables(self, arguments: Message, _busy: bool, respond: Callable[..., None]) -> None:
        def done(answer: Message) -> None:
            body = answer.get("body") or {}
            body["variables"] = [each for each in body.get("variables", []) if is_users(each["name"])]
            respond(bool(answer.get("success")), answer.get("message", ""), body)

        if self._state is not None and self._state.stopped:
            self._forward({"seq": 0, "command": "variables"}, arguments, done)
        else:
            respond(True, "", {"variables": []})

    def _on_inspectVariables(self, _arguments: Message, is_busy: bool, respond: Callable[..., None]) -> None:  # noqa: N802
        def look() -> None:
            found = [variable(name, value) for name, value in list(self._shell.user_ns.items()) if is_users(name)]
            respond(True, "", {"variables": found})

        if is_busy:
            respond(True, "", {"variables": []})
        else:
            self._when_idle(look)

    def _on_richInspectVariables(self, arguments: Message, is_busy: bool, respond: Callable[..., None]) -> None:  # noqa: N802
        name, frame = str(arguments.get("variableName")), arguments.get("frameId")

        def look() -> None:
            data, metadata = self._shell.display_formatter.format(self._shell.user_ns.get(name))
            content = {"data": data, "metadata": metadata}  # of a figure: bytes
            respond(True, "", json.loads(encode_content(content)))

        def done(answer: Message) -> None:
            text = (answer.get("body") or {}).get("result", "")
            respond(True, "", {"data": {"text/plain": text}, "metadata": {}})

        if not name.isidentifier():
            respond(True, "", {"data": {}, "metadata": {}})
        elif self._state is not None and self._state.stopped:
            where = {"expression": name, "frameId": frame, "context": "clipboard"}
            self._forward({"seq": 0, "command": "evaluate"}, where, done)
        elif is_busy or name not in self._shell.user_ns:
            respond(False, "The rank is busy, or has no such variable.", {"data": {}, "metadata": {}})
        else:
            self._when_idle(look)

    def _on_copyToGlobals(self, arguments: Message, _busy: bool, respond: Callable[..., None]) -> None:  # noqa: N802
        target, source = str(arguments.get("dstVariableName")), str(arguments.get("srcVariableName"))
        if not target.isidentifier() or not source.isidentifier():
            respond(False, "Names of variables must be identifiers.", {})
            return
        where = {"expression": f"globals()['{target}']", "value": source, "frameId": arguments.get("srcFrameId")}

        def done(answer: Message) -> None:
            respond(bool(answer.get("success")), answer.get("message", ""), answer.get("body") or {})

        self._forward({"seq": 0, "command": "setExpression"}, where, done)

    def _on_modules(self, _arguments: Message, _busy: bool, respond: Callable[..., None]) -> None:
        respond(True, "", {"modules": [], "totalModules": 0})

    def _on_debugInfo(self, _arguments: Message, _busy: bool, respond: Callable[..., None]) -> None:  # noqa: N802
        state = self._state
        points = state.breakpoints if state is not None else {}
        body = {
            "isStarted": state is not None,
            "hashMethod": "Murmur2",
            "hashSeed": HASH_SEED,
            "tmpFilePrefix": self.folder + os.sep,
            "tmpFileSuffix": ".py",
            "breakpoints": [{"source": path, "breakpoints": lines} for path, lines in points.items()],
            "stoppedThreads": list(state.stopped) if state is not None else [],
            "richRendering": True,
            "exceptionPaths": ["Python Exceptions"],
            "copyToGlobals": True,
        }
        respond(True, "", body)

    def _on_disconnect(self, _arguments: Message, _busy: bool, respond: Callable[..., None]) -> None:
        self.detach()
        respond(True, "", {})

    def _on_events(self, arguments: Message, _busy: bool, respond: Callable[..., None]) -> None:
        """Answer with the events after `since`; if there is none yet, when one comes or the wait is over."""
        since = int(arguments.get("since", 0))
        wait = min(float(arguments.get("wait", 0)), MAX_WAIT_SECONDS)

        def answer(_: Message) -> None:
            found = [event for number, event in self._events if number > since]
            respond(True, "", {"events": found, "seq": self._num_events, "isStarted": self._state is not None})

        with self._lock:
            if self._num_events == since and wait > 0 and self._state is not None:
                timer = untraced(threading.Timer(wait, self._wake))
                self._waiting.append((since, answer, timer))
                timer.start()
                return
        answer({})

    def detach(self) -> None:
        """End the debugger: the rank continues, at full speed from its next cell on. Idempotent."""
        state, self._state = self._state, None
        if state is None:
            return
        with contextlib.suppress(OSError):
            send(state.sock, {"type": "request", "seq": next(self._seq), "command": "disconnect", "arguments": {}})
        self._shell.compile.get_code_name = self._compile_name
        sys.breakpointhook = self._breakpointhook
        self._when_idle(lambda: stop_tracing(state.sock))
        for pending in list(state.pending.values()):
            pending({"type": "response", "success": False, "message": _ENDED, "body": {}})
        if state.stopped:
            self._report(None)
        for path in state.paths:
            with contextlib.suppress(OSError):
                os.unlink(path)
        self._wake()

    def release(self) -> None:
        """Let a stopped thread continue, so that an interrupt reaches its code."""
        if self._state is not None and self._state.stopped:
            thread = {"threadId": self._state.stopped[0]}
            self._forward({"seq": 0, "command": "continue"}, thread, lambda _: None)

    def _wake(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for _, answer, timer in waiting:
            timer.cancel()
            answer({})

    def _take(self, message: Message) -> None:
        """Handle a message of pydevd (in a separate thread)."""
        state = self._state
        if message.get("type") == "response":
            pending = state.pending.pop(message.get("request_seq", -1), None) if state is not None else None
            if pending is not None:
                pending(message)
        elif message.get("type") == "event" and state is not None:
            body = message.get("body") or {}
            if message["event"] == "stopped":
                state.stopped = [body.get("threadId", 1)]
                self._look_where(state)
            elif message["event"] == "continued":
                state.stopped = []
                self._report(None)
            if message["event"] in ("stopped", "continued", "terminated", "breakpoint"):
                with self._lock:
                    self._num_events += 1
                    self._events.append((self._num_events, message))
                self._wake()

    def _look_where(self, state: _State) -> None:
        """Report the line that the rank is stopped at."""

        def done(answer: Message) -> None:
            frames = self._users((answer.get("body") or {}).get("stackFrames", []))
            if frames and state.stopped:
                path = str((frames[0].get("source") or {}).get("path"))
                self._report(Stop(line=max(1, int(frames[0].get("line", 1))), file=self._name_of(state, path)))

        self._forward({"seq": 0, "command": "stackTrace"}, {"threadId": state.stopped[0]}, done)

    def _name_of(self, state: _State, path: str) -> str | None:
        """Return the name of a file for users; None: the running cell."""
        name, compiler = state.earlier.get(path, path), self._shell.compile
        if name == compiler.current:
            return None
        return f"cell [{compiler.numbers[name]}]" if name in compiler.numbers else os.path.basename(path)[:MAX_NAME]

    def _read(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError, EOFError):
            for message in messages(sock):
                self._take(message)
        if self._state is not None and self._state.sock is sock:
            self.detach()

    def _watch(self, state: _State) -> None:
        """Detach when no page has asked for a while: it was closed, or lost its server."""
        while self._state is state:
            time.sleep(1.0)
            if time.monotonic() - self._heard_at > LEFT_SECONDS:
                self.detach()

    def _attach(self) -> _State:
        """Import pydevd, give it one end of a socket pair, and have cells compiled under the names of their files."""
        self._breakpointhook = sys.breakpointhook
        ours = start_pydevd()
        state = _State(ours)
        self._heard_at = time.monotonic()
        for target, arguments in ((self._read, ours), (self._watch, state)):
            self._state = state
            untraced(threading.Thread(target=target, args=(arguments,), name="jupyter_dist debugger")).start()
        compiler = self._shell.compile
        self._compile_name = compiler.get_code_name
        compiler.get_code_name = self._begin_cell
        return state

    def _begin_cell(self, raw_code: str, *_: Any) -> str:
        """Return the name under which a cell is compiled, once at its begin."""
        if sys.version_info < (3, 12) and sys.gettrace() is None:  # an interrupt in a trace function ends tracing
            pydevd: Any = sys.modules["pydevd"]
            pydevd.get_global_debugger().enable_tracing()
        path = self._file_of(raw_code)
        state = self._state
        # One file stands for one name: a cell that is run again keeps its own.
        return path if state is None else state.earlier.get(path, path)

    def _file_of(self, code: str) -> str:
        return os.path.join(self.folder, f"{murmur2(code.encode('utf-8', 'surrogatepass'), HASH_SEED)}.py")

    def _users(self, frames: list[Message]) -> list[Message]:
        """Return the user's frames of a stack, innermost first: up to the cell's, and none of ours."""
        paths = [str((frame.get("source") or {}).get("path")) for frame in frames]
        cells = [number for number, path in enumerate(paths) if path.startswith(self.folder)]
        last = cells[-1] + 1 if cells else len(frames)
        kept = [
            frame
            for frame, path in zip(frames[:last], paths, strict=False)
            if not path.startswith(tracebacks.MACHINERY)
        ]
        return kept or frames
