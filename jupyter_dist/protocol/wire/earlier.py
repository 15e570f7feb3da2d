"""What groups cannot do that an earlier jupyter_dist has started; agents of 0.2 speak protocol 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.parts import declared

FIRST_PROTOCOL = 1
NEWER_REQUESTS: Mapping[str, str] = {
    "ends": say("save its ranks before its allocation ends"),
    "verdicts": say("list its verdicts"),
    "tunnels": say("connect to its nodes through tunnels"),
    **declared("NEWER_REQUESTS"),
}
NEWER_FIELDS: Mapping[str, str] = declared("NEWER_FIELDS")
UNUSED_FIELDS = frozenset({"expression"})  # of an execution: they matter to the newer requests alone


def fields_of_first(t: str, fields: dict[str, Any], version: str) -> dict[str, Any]:
    """Return the fields of a request as an agent of protocol 1 reads them.

    Raises:
        JupyterDistError: `incompatible`, if it cannot do what is asked.
    """
    if t in NEWER_REQUESTS:
        raise cannot(t, version)
    if t == "replace" and (fields.get("wanted") or {}).get("state", "empty") != "empty":
        raise _cannot(say("give variables to the ranks that it replaces"), version)
    if t != "execute":
        return fields
    execution = {name: value for name, value in fields["execution"].items() if name not in UNUSED_FIELDS}
    for name, what in NEWER_FIELDS.items():
        if execution.pop(name, None):
            raise _cannot(what, version)
    return {**fields, "execution": execution}


def is_unknown(t: str, err: JupyterDistError) -> bool:
    """Whether an agent has answered that it does not know a request: agents of later versions do."""
    return err.message == f"Unknown request '{t}'."


def cannot(t: str, version: str) -> JupyterDistError:
    """Return the error for a request that the agent of a group does not know."""
    return _cannot(NEWER_REQUESTS.get(t, say("answer '%1'", t)), version)


def _cannot(what: str, version: str) -> JupyterDistError:
    return JupyterDistError(
        "incompatible",
        say("This group cannot %1: jupyter_dist %2 has started it.", what, version),
        say("Its cells run as before. Groups that are started from now on can do it."),
    )
