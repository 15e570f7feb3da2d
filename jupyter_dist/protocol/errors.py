"""Our own errors. A user's exception on a rank is an output, never one of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .models import ErrorBody


class JupyterDistError(Exception):
    """An error with a stable code, one sentence, and a hint on what to do.

    The fields travel unchanged from the agent to HTTP (see docs/api.md, Errors); only `server/http`
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
        """Called by IPython: show only the sentence, because a traceback through our code does not help users."""
        return [f"\x1b[0;31m{type(self).__name__}\x1b[0m: {self}"]

    def to_dict(self) -> ErrorBody:
        """Return the error object of docs/api.md."""
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
    """Return the error for a field with the wrong type or an unknown name."""
    return JupyterDistError("bad_request", message, hint)
