"""Our own failures. A user's exception on a rank is an output, never one of these."""

from __future__ import annotations

from typing import Any


class JupyterDistError(Exception):
    """A failure with a stable code, one sentence, and what to do about it.

    The fields travel unchanged from the agent to HTTP (see docs/api.md, Errors); only `handlers`
    knows which code is which status.
    """

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def _render_traceback_(self) -> list[str]:
        """IPython asks for this: the sentence says what is wrong, where we noticed says nothing."""
        return [f"\x1b[0;31m{type(self).__name__}\x1b[0m: {self}"]

    def to_dict(self) -> dict[str, str]:
        """The error object of docs/api.md."""
        return {"code": self.code, "message": self.message, "hint": self.hint}

    @classmethod
    def from_dict(cls, data: Any) -> JupyterDistError:
        """Rebuild an error that came over a channel; never raises on a damaged one."""
        fields = data if isinstance(data, dict) else {"message": repr(data)}
        return cls(
            str(fields.get("code", "internal")),
            str(fields.get("message", "unknown error")),
            str(fields.get("hint", "")),
        )


def bad_request(message: str, hint: str = "") -> JupyterDistError:
    """A field has the wrong type, or an unknown name."""
    return JupyterDistError("bad_request", message, hint)
