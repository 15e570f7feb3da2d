"""The road between clients and the code on a rank: typed messages in both directions (decision 15).

A message has a kind, and each kind its content, its limit and its check, all of them here. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from .errors import bad_request

MAX_PROMPT_CHARS = 4000
MAX_INPUT_CHARS = 10_000  # in JSON it fits into a message of the WebSocket
MAX_MESSAGE_BYTES = 256 << 10


class InputQuestion(TypedDict):
    """`input` from a rank: its code asks, and waits for the answer."""

    prompt: str
    password: bool  # the answer is shown to nobody, and in no log


class InputAnswer(TypedDict):
    """`input` to a rank: the answer to its question."""

    text: str | None  # None: there is no more input (EOFError), as after Ctrl-D in a terminal


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


FROM_RANK: Mapping[str, Kind] = {
    "input": Kind(_is_question),
    "input_over": Kind(lambda content: not content),  # it waits no longer: it was interrupted
}
TO_RANK: Mapping[str, Kind] = {"input": Kind(_is_answer)}
