"""What an Output widget shows: collected here, and sent as the widget's state. Any thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MAX_TEXT_CHARS = 200_000  # of one stream: all of it is sent again with each change
MAX_OUTPUTS = 500
_CUT = "\u2026 (an Output widget keeps the last {} characters)\n"

Output = dict[str, Any]


class Capture:
    """The outputs of one widget, as nbformat has them."""

    def __init__(self, outputs: list[Output], encode: Callable[[list[Output]], bytes], outer: Capture | None) -> None:
        self.outputs = outputs
        self.outer = outer  # what had the output before
        self._encode = encode
        self._clear_next = False

    def text(self, name: str, data: bytes) -> bytes:
        """Add text of a stream; return the frame that shows it."""
        self._begin()
        last = self.outputs[-1] if self.outputs else {}
        if last.get("name") != name:
            last = {"output_type": "stream", "name": name, "text": ""}
            self.outputs.append(last)
        text = _fed(str(last["text"]), data.decode("utf-8", "replace"))
        if len(text) > MAX_TEXT_CHARS:
            text = _CUT.format(MAX_TEXT_CHARS) + text[-MAX_TEXT_CHARS:].partition("\n")[2]
        self.outputs[-1] = {**last, "text": text}
        return self._encode(self.outputs)

    def output(self, msg_type: str, content: dict[str, Any]) -> bytes:
        """Add, update or clear displays; return the frame that shows it."""
        if msg_type == "clear_output":
            self._clear_next = True
            if not content.get("wait"):
                self._begin()
            return self._encode(self.outputs)
        display_id = content.get("transient", {}).get("display_id")
        if msg_type == "update_display_data":
            for shown in self.outputs:
                if display_id is not None and shown.get("transient", {}).get("display_id") == display_id:
                    shown.update(data=content["data"], metadata=content["metadata"])
            return self._encode(self.outputs)
        self._begin()
        self.outputs.append({"output_type": msg_type, **content})
        return self._encode(self.outputs)

    def _begin(self) -> None:
        if self._clear_next:
            self._clear_next = False
            self.outputs.clear()
        del self.outputs[:-MAX_OUTPUTS]


def _fed(before: str, text: str) -> str:
    """Return the text with the last line as carriage returns have left it."""
    if "\r" not in text:
        return before + text
    head, _, line = (before + text).rpartition("\n")
    parts = line.split("\r")
    shown = ""
    for part in parts:
        shown = part + shown[len(part) :]
    return f"{head}\n{shown}" if head or "\n" in before + text else shown
