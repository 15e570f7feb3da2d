"""Our own errors. A user's exception on a rank is an output, never one of these."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .models.sentences import with_words, words_of

if TYPE_CHECKING:
    from jupyter_dist.protocol.models.models import ErrorBody


# Sentences end with a full stop, and so do many errors that they quote; three are an ellipsis.
_TWO_STOPS = re.compile(r"(?<![.\s/])\.\.(?=\s|$)")


class JupyterDistError(Exception):
    """An error with a stable code, one sentence, and a hint on what to do.

    The fields travel unchanged from the agent to HTTP (see docs/api.md, Errors); only `server/http`
    knows which code is which status.
    """

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        message = with_words(_TWO_STOPS.sub(".", message), words_of(message))
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def __reduce__(self) -> tuple[Any, ...]:
        """Called when it is pickled: by default, `__init__` would be called with the message alone."""
        return _restored, (type(self), self.args), vars(self)

    def _render_traceback_(self) -> list[str]:
        """Called by IPython: show only the sentence, because a traceback through our code does not help users."""
        return [f"\x1b[0;31m{type(self).__name__}\x1b[0m: {self}"]

    def to_dict(self) -> ErrorBody:
        """Return the error object of docs/api.md."""
        body: ErrorBody = {"code": self.code, "message": self.message, "hint": self.hint}
        if words := words_of(self.message):
            body["message_words"] = words
        if words := words_of(self.hint):
            body["hint_words"] = words
        return body

    @classmethod
    def from_dict(cls, data: Any) -> JupyterDistError:
        """Rebuild an error that came over a channel; never raises on a damaged one."""
        fields = data if isinstance(data, dict) else {"message": repr(data)}
        return cls(
            str(fields.get("code", "internal")),
            with_words(fields.get("message", "unknown error"), fields.get("message_words")),
            with_words(fields.get("hint", ""), fields.get("hint_words")),
        )


def _restored(cls: type[JupyterDistError], args: tuple[Any, ...]) -> JupyterDistError:
    error = cls.__new__(cls)
    error.args = args
    return error


class TimedOutError(JupyterDistError, TimeoutError):
    """A time limit has passed: a JupyterDistError with the code `timed_out`, and Python's TimeoutError."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__("timed_out", message, hint)


def bad_request(message: str, hint: str = "") -> JupyterDistError:
    """Return the error for a field with the wrong type or an unknown name."""
    return JupyterDistError("bad_request", message, hint)
