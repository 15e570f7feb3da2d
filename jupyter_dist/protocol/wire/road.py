"""The road between clients and the code on a rank: typed messages in both directions (decision 15).

A message has a kind, and each kind its content, its limit and its check, all of them here. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from jupyter_dist.protocol.errors import bad_request

from .places import MAX_NAME

if TYPE_CHECKING:
    from typing_extensions import Required

MAX_PROMPT_CHARS = 4000
MAX_INPUT_CHARS = 10_000  # in JSON it fits into a message of the WebSocket
MAX_MESSAGE_BYTES = 256 << 10
MAX_COMM_BYTES = 16 << 20  # of one message of a widget, with its buffers
MAX_COMM_ID = 200


class InputQuestion(TypedDict):
    """`input` from a rank: its code asks, and waits for the answer."""

    prompt: str
    password: bool  # the answer is not shown, and not logged


class InputAnswer(TypedDict):
    """`input` to a rank: the answer to its question."""

    text: str | None  # None: there is no more input (EOFError), as after Ctrl-D in a terminal


class Stop(TypedDict):
    """`stopped` from a rank: JupyterLab's debugger has stopped its cell there."""

    line: int
    file: str | None  # null: the running cell; of another cell: cell [5]


class CommContent(TypedDict, total=False):
    """`comm_open`, `comm_msg` and `comm_close`, in both directions, as in Jupyter's protocol."""

    comm_id: Required[str]
    target_name: str  # of `comm_open`
    data: dict[str, Any]
    metadata: dict[str, Any]
    buffers: list[str]  # in base64
    parent: str | None  # from a rank: the number of the message that its code was handling
    msg_id: str | None  # to a rank: names this message; `comm_done` has it when the code has handled it


@dataclass(frozen=True)
class Kind:
    """A kind of messages in one direction."""

    is_sound: Callable[[dict[str, Any]], bool]
    max_bytes: int = MAX_MESSAGE_BYTES

    def encode(self, content: Any) -> bytes:
        """Return the payload. Raises JupyterDistError `bad_request`."""
        if not isinstance(content, dict) or not self.is_sound(content):
            raise bad_request("This is not a content of that kind of message.", "See docs/messaging.md, The road.")
        payload = json.dumps(content).encode()
        if len(payload) > self.max_bytes:
            raise bad_request(f"The message has {len(payload)} bytes; the limit is {self.max_bytes}.")
        return payload

    def decode(self, payload: bytes) -> dict[str, Any]:
        """Return the content. Raises ValueError."""
        content = json.loads(payload) if len(payload) <= self.max_bytes else None
        if not isinstance(content, dict) or not self.is_sound(content):
            message = "not a content of this kind"
            raise ValueError(message)
        return content


def _is_question(content: dict[str, Any]) -> bool:
    prompt, password = content.get("prompt"), content.get("password")
    is_short = isinstance(prompt, str) and len(prompt) <= MAX_PROMPT_CHARS
    return set(content) == {"prompt", "password"} and is_short and isinstance(password, bool)


def _is_answer(content: dict[str, Any]) -> bool:
    text = content.get("text", 0)
    return set(content) == {"text"} and (text is None or (isinstance(text, str) and len(text) <= MAX_INPUT_CHARS))


def _is_stop(content: dict[str, Any]) -> bool:
    line, file = content.get("line"), content.get("file", 0)
    is_named = file is None or (isinstance(file, str) and len(file) <= MAX_NAME)
    return set(content) == {"line", "file"} and type(line) is int and line > 0 and is_named


def _is_comm(content: dict[str, Any]) -> bool:
    types = {"target_name": str, "data": dict, "metadata": dict, "buffers": list}
    is_typed = all(isinstance(content[name], types[name]) for name in types.keys() & content.keys())
    names = (content.get("comm_id"), content.get("parent") or "", content.get("msg_id") or "")
    are_ids = all(isinstance(name, str) and len(name) <= MAX_COMM_ID for name in names)
    known = {"comm_id", "parent", "msg_id", *types}
    return (
        is_typed and are_ids and set(content) <= known and all(isinstance(b, str) for b in content.get("buffers", ()))
    )


def _is_done(content: dict[str, Any]) -> bool:
    return set(content) == {"comm_id", "msg_id"} and all(isinstance(name, str) for name in content.values())


_COMM = Kind(_is_comm, MAX_COMM_BYTES)
COMM_KINDS = ("comm_open", "comm_msg", "comm_close")

FROM_RANK: Mapping[str, Kind] = {
    "input": Kind(_is_question),
    "input_over": Kind(lambda content: not content),  # it waits no longer: it was interrupted
    "stopped": Kind(_is_stop),
    "stopped_over": Kind(lambda content: not content),  # its cell runs again
    **dict.fromkeys(COMM_KINDS, _COMM),
    "comm_done": Kind(_is_done),  # the code has handled that message, and its output has been sent
}
TO_RANK: Mapping[str, Kind] = {
    "input": Kind(_is_answer),
    **dict.fromkeys(COMM_KINDS, _COMM),
}


def checked(kind: str, content: str) -> bytes:
    """Return the payload of a message to a rank, given its content in JSON. Raises JupyterDistError `bad_request`."""
    payload = content.encode("utf-8", "replace")
    try:
        TO_RANK[kind].decode(payload)
    except (ValueError, RecursionError) as err:
        message = f"'content' is not valid for '{kind}': {err!s:.100}."
        raise bad_request(message, "See docs/messaging.md, The road.") from err
    return payload
