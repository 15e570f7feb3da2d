"""Comms: the messages between widgets of cells and the pages that show them (decision 20).

Nothing here is imported or called before a cell imports `comm`, as ipywidgets does (frameworks/widgets.py).
"""

from __future__ import annotations

import base64
from typing import Any, Protocol

from jupyter_dist.protocol.wire import road
from jupyter_dist.rank.guard.own import json, threading
from jupyter_dist.rank.ipython.displays import encode_content
from jupyter_dist.rank.output.capture import Capture, check_size
from jupyter_dist.rank.output.outbox import Outbox
from jupyter_dist.rank.output.readable import check_readable
from jupyter_dist.rank.output.streams import Streams
from jupyter_dist.transport.frames import Header, encode_frame

from .runner import Runner

INTERRUPTIBLE = True  # callbacks of widgets run below these functions

_UNSOUND = (
    "A comm sends a dict as data, and one as metadata; its target_name is a string, and its id is one of at most "
    f"{road.MAX_COMM_ID} characters."
)


class CommManager(Protocol):
    """The methods of comm.CommManager that WidgetComms calls."""

    comms: dict[str, Any]

    def comm_open(self, stream: Any, ident: Any, msg: dict[str, Any]) -> None:
        """Open a comm that a page has opened."""


class WidgetComms:
    """Sends the comm messages of the code; messages of pages are handled in the main thread, after the running cell."""

    manager: CommManager | None = None  # set when a cell imports `comm`

    def __init__(self, outbox: Outbox, streams: Streams, runner: Runner) -> None:
        self._outbox = outbox
        self._streams = streams
        self._runner = runner
        self._made_in: dict[str, str | None] = {}  # the execution whose output a comm's callbacks continue
        self._parent: str | None = None  # the message that is being handled
        self._main = threading.main_thread()

    # -- the code's threads -------------------------------------------------------------------------

    def publish(self, kind: str, comm_id: str, content: dict[str, Any], buffers: list[Any] | None) -> None:
        """Send a message of a comm, in order with what the code prints.

        Raises:
            ValueError: it is too large, or nested too deeply.
            TypeError: it is no message of a comm.
        """
        if self._outbox.in_child:
            return
        check_size(sum(memoryview(buffer).nbytes for buffer in buffers or ()))
        content = {"comm_id": comm_id, **{name: value for name, value in content.items() if value is not None}}
        if buffers:
            content["buffers"] = [base64.b64encode(buffer).decode() for buffer in buffers]
        if self._parent is not None and threading.get_ident() == self._main.ident:
            content["parent"] = self._parent
        payload = encode_content(content)
        _check(kind, payload)
        if kind == "comm_open":
            self._made_in[comm_id] = self._outbox.execution_id
        made_in = self._made_in.get(comm_id)
        if kind == "comm_close":
            self._made_in.pop(comm_id, None)
        self._streams.flush()
        self._send(kind, made_in, payload)

    def _send(self, kind: str, execution_id: str | None, payload: bytes) -> None:
        self._outbox.send(self._header(kind, execution_id), payload)

    @staticmethod
    def _header(kind: str, execution_id: str | None) -> Header:
        return {"t": "from_rank", "kind": kind, "execution_id": execution_id, "number": 0}

    def enter(self, widget: Any) -> None:
        """Capture the output written from now on in an Output widget."""
        self._flush()
        comm_id = getattr(widget.comm, "comm_id", None)
        if not isinstance(comm_id, str):
            return  # the widget is closed: the output is shown in the cell, as in a kernel
        begin = f'{{"comm_id": {json.dumps(comm_id)}, "data": {{"method": "update", "state": {{"outputs": '.encode()

        def encode(outputs: bytes) -> bytes:
            update = b"".join((begin, outputs, b'}, "buffer_paths": []}}'))
            return encode_frame(self._header("comm_msg", self._made_in.get(comm_id)), update)

        shown = json.loads(encode_content({"outputs": list(widget.outputs)}))["outputs"]
        self._outbox.capture = Capture(widget, shown, encode, self._outbox.capture)

    def leave(self, widget: Any) -> None:
        """End the capture of an Output widget: output goes to the previous destination."""
        try:
            self._flush()
        finally:  # an interrupt must not leave the output with the widget
            capture = self._outbox.capture
            own = capture if capture is not None and capture.owner is widget else None
            if own is not None:
                self._outbox.capture = own.outer
        if own is not None:
            widget.outputs = tuple(own.outputs)

    def _flush(self) -> None:
        self._streams.flush()
        self._outbox.flush_text()

    # -- side thread --------------------------------------------------------------------------------

    def take(self, kind: str, content: road.CommContent) -> None:
        """Queue a message of a page, which is handled when the main thread is idle."""
        self._runner.when_idle(lambda: self._handle(kind, content))

    # -- main thread --------------------------------------------------------------------------------

    def _handle(self, kind: str, content: road.CommContent) -> None:
        comm_id, self._parent = content["comm_id"], content.get("msg_id")
        made_in = self._made_in.get(comm_id)
        try:
            self._runner.call_back(made_in, lambda: self._call(kind, content))
        finally:
            msg_id, self._parent = self._parent, None
            if msg_id is not None:
                done = road.FROM_RANK["comm_done"].encode({"comm_id": comm_id, "msg_id": msg_id})
                self._send("comm_done", made_in, done)

    def _call(self, kind: str, content: road.CommContent) -> None:
        manager, comm_id = self.manager, content["comm_id"]
        if manager is None:
            return
        message = {
            "header": {"msg_id": content.get("msg_id"), "msg_type": kind},
            "parent_header": {},
            "metadata": content.get("metadata", {}),
            "content": {"data": {}, **{name: value for name, value in content.items() if name != "buffers"}},
            "buffers": [memoryview(base64.b64decode(buffer)) for buffer in content.get("buffers", ())],
        }
        if kind == "comm_open":
            self._made_in.setdefault(comm_id, self._outbox.execution_id)
            manager.comm_open(None, None, message)
        elif (comm := manager.comms.get(comm_id)) is None:
            return  # closed meanwhile
        elif kind == "comm_msg":
            comm.handle_msg(message)
        else:
            comm._closed = True
            manager.comms.pop(comm_id, None)
            comm.handle_close(message)


def _check(kind: str, payload: bytes) -> None:
    """Raise if the agent would reject this message, because it would end this rank."""
    check_size(len(payload))
    check_readable(payload)
    if kind not in road.COMM_KINDS:
        raise ValueError(f"A comm cannot send a '{kind}'.")
    try:
        road.FROM_RANK[kind].decode(payload)
    except ValueError:
        raise TypeError(_UNSOUND) from None
