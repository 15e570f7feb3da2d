"""What the cells of a test had in `checks`: none may be accused that the test has not planned."""

from __future__ import annotations

from typing import Any

FOUND: dict[str, str] = {}  # by execution and kind: the message


def note(execution: dict[str, Any]) -> dict[str, Any]:
    """Keep the checks of an execution that a test has received."""
    for check in execution.get("checks") or ():
        FOUND[f"{execution['id']} {check['kind']}"] = check["message"]
    return execution


def take() -> dict[str, str]:
    """Return what was found since the last call."""
    found = dict(FOUND)
    FOUND.clear()
    return found
