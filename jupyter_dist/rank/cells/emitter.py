"""Sends the outputs of cells (displays, results, errors), in order with the text that was written before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jupyter_dist.rank.ipython.displays import DisplayOwners, check_size, encode_content
from jupyter_dist.rank.output.outbox import Outbox, write_all
from jupyter_dist.rank.output.streams import Streams

REPLACEABLE = frozenset({"display_data", "update_display_data", "clear_output"})


class Emitter:
    """A callable that sends an output. Any thread of a cell may call it."""

    def __init__(self, outbox: Outbox, streams: Streams, safe_point: Callable[[], None]) -> None:
        self._outbox = outbox
        self._streams = streams
        self._safe_point = safe_point  # where a waiting interrupt may take effect
        self._shown = DisplayOwners()

    def __call__(self, msg_type: str, content: dict[str, Any]) -> None:
        """Send an output, after the text that was written before it."""
        if self._outbox.in_child:
            _emit_in_child(msg_type, content)
            return
        if (capture := self._outbox.capture) is not None:
            self._streams.flush()
            self._outbox.show_captured(capture, msg_type, capture.taken(encode_content(content)))
            self._safe_point()
            return
        if msg_type in REPLACEABLE:
            self._streams.keep_order()
        else:
            self._streams.flush()
        payload = encode_content(content)
        check_size(payload)
        display_id = content.get("transient", {}).get("display_id") if msg_type in REPLACEABLE else None
        known = display_id if isinstance(display_id, str) else None  # others are replaced by no update
        for execution_id in self._shown.owners(msg_type, known, self._outbox.execution_id):
            header = {"t": "output", "execution_id": execution_id, "msg_type": msg_type}
            if msg_type in REPLACEABLE:
                key = None if known is None else f"{execution_id} {known}"
                self._outbox.show(header, payload, key, content.get("wait", False))
            else:
                self._outbox.send(header, payload)
        self._safe_point()


def _emit_in_child(msg_type: str, content: dict[str, Any]) -> None:
    """Write a forked child's output to the pipes as text: it has no channel."""
    if msg_type == "error":
        write_all(2, ("\n".join(content["traceback"]) + "\n").encode("utf-8", "backslashreplace"))
    elif "text/plain" in content.get("data", {}):
        write_all(1, (str(content["data"]["text/plain"]) + "\n").encode("utf-8", "backslashreplace"))
