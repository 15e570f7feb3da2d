"""The outputs of an Output widget: collected here, and sent as the widget's state. Any thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jupyter_dist.protocol.wire import road
from jupyter_dist.rank.guard.own import json

from .readable import check_readable

MAX_TEXT_CHARS = 200_000  # of one stream: its whole text is sent again with each change
MAX_OUTPUTS = 500
MAX_BYTES = road.MAX_COMM_BYTES - (64 << 10)  # of all outputs, in JSON; the rest of a message is shorter
_OUTPUT_TYPE_BYTES = 100  # of an output, besides its content
_CUT = "\u2026 (an Output widget keeps the last {} characters)\n"
_LEFT_OUT = (
    "\u2026 (older outputs are not shown: an Output widget keeps the last {} outputs, and {:.0f} MB of outputs)\n"
)
_TOO_LARGE = (
    "This widget sends {size:.0f} MB; the limit is {limit:.0f} MB. Show a part of the data, or save it to a file and "
    "display a link."
)

Output = dict[str, Any]


def check_size(size: int, limit: int = road.MAX_COMM_BYTES) -> None:
    """Raise ValueError, with a message for the user, if a widget would send more than the agent takes."""
    if size > limit:
        raise ValueError(_TOO_LARGE.format(size=size / 1e6, limit=limit / 1e6))


class Capture:
    """The outputs of one widget, in the form of nbformat.

    Args:
        owner: the widget.
        outputs: the outputs that the widget already shows, of JSON types only.
        encode: returns the frame for its outputs, a JSON list.
        outer: the capture that had the output before.
    """

    def __init__(
        self, owner: Any, outputs: list[Output], encode: Callable[[bytes], bytes], outer: Capture | None
    ) -> None:
        self.owner = owner
        self.outer = outer
        self._encode = encode
        self._is_cut = outputs[:1] == [_left_out()]
        self._outputs = outputs[self._is_cut :]
        self._parts = [_in_json(output) for output in self._outputs]  # each in JSON: most changes are of the last one
        self._clear_next = False
        self._cut()

    @property
    def outputs(self) -> list[Output]:
        """Return all outputs that the widget shows."""
        return [_left_out(), *self._outputs] if self._is_cut else self._outputs

    def text(self, name: str, data: bytes) -> bytes:
        """Add text of a stream; return the frame that shows it."""
        self._begin()
        last = self._outputs[-1] if self._outputs else {}
        if last.get("name") != name:
            last = {"output_type": "stream", "name": name, "text": ""}
            self._add(last)
        text = _fed(str(last["text"]), data.decode("utf-8", "replace"))
        if len(text) > MAX_TEXT_CHARS:
            text = _CUT.format(MAX_TEXT_CHARS) + text[-MAX_TEXT_CHARS:].partition("\n")[2]
        self._replace(len(self._outputs) - 1, {**last, "text": text})
        return self._frame()

    @staticmethod
    def taken(payload: bytes) -> dict[str, Any]:
        """Return the content of a display, given in JSON. Raises ValueError if no widget can show it."""
        check_size(len(payload), MAX_BYTES - _OUTPUT_TYPE_BYTES)
        check_readable(payload)
        content: dict[str, Any] = json.loads(payload)
        return content

    def output(self, msg_type: str, content: dict[str, Any]) -> bytes:
        """Add, update or clear displays, given as `taken` returns them; return the frame that shows it."""
        if msg_type == "clear_output":
            self._clear_next = True
            if not content.get("wait"):
                self._begin()
            return self._frame()
        if msg_type == "update_display_data":
            display_id = _display_id(content)
            for index, shown in enumerate(self._outputs):
                if display_id is not None and _display_id(shown) == display_id:
                    self._replace(index, {**shown, "data": content["data"], "metadata": content["metadata"]})
            return self._frame()
        self._begin()
        self._add({"output_type": msg_type, **content})
        return self._frame()

    def _begin(self) -> None:
        if self._clear_next:
            self._clear_next = self._is_cut = False
            self._outputs, self._parts = [], []

    def _add(self, output: Output) -> None:
        self._outputs.append(output)
        self._parts.append(_in_json(output))

    def _replace(self, index: int, output: Output) -> None:
        self._outputs[index], self._parts[index] = output, _in_json(output)

    def _frame(self) -> bytes:
        self._cut()
        left_out = [_in_json(_left_out())] if self._is_cut else []
        return self._encode(b"[" + b", ".join([*left_out, *self._parts]) + b"]")

    def _cut(self) -> None:
        """Drop the oldest outputs that are too many or too large together: the agent would end this rank."""
        size, num_cut = sum(map(len, self._parts)), max(0, len(self._parts) - MAX_OUTPUTS)
        size -= sum(map(len, self._parts[:num_cut]))
        while size > MAX_BYTES:
            size -= len(self._parts[num_cut])
            num_cut += 1
        if num_cut:
            self._is_cut = True
            self._outputs, self._parts = self._outputs[num_cut:], self._parts[num_cut:]


def _left_out() -> Output:
    return {"output_type": "stream", "name": "stdout", "text": _LEFT_OUT.format(MAX_OUTPUTS, MAX_BYTES / 1e6)}


def _display_id(output: Output) -> Any:
    transient = output.get("transient")
    return transient.get("display_id") if isinstance(transient, dict) else None


def _in_json(output: Output) -> bytes:
    return json.dumps(output).encode()


def _fed(before: str, text: str) -> str:
    """Return the text with carriage returns applied to the last line."""
    if "\r" not in text:
        return before + text
    head, _, line = (before + text).rpartition("\n")
    parts = line.split("\r")
    shown = ""
    for part in parts:
        shown = part + shown[len(part) :]
    return f"{head}\n{shown}" if head or "\n" in before + text else shown
