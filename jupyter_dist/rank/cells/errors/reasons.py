"""The explanation beside the error of a collective: the rank that caused it, and the process group to create again."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple

from jupyter_dist.rank.collectives import failures, torch_compat
from jupyter_dist.rank.guard.own import threading
from jupyter_dist.rank.ipython import tracebacks

PEER_NEWS_SECONDS = 0.5  # a broken connection is noticed before the agent learns of a death
RE_CREATE = "The process group is re-created before the next cell; variables are kept."

# gloo's own message is "typically caused by a remote worker crashing".
_LEFT = "Another rank closed its connections: it died, was interrupted, timed out, or left the process group"
_NEW_GROUP = "Create it again with new_group() on all ranks; other process groups are not affected."
_NO_GROUP = "process group has not been initialized"
_PORT = re.compile(r"(?<=\]):\d+")


class ReportedError(NamedTuple):
    """How an error is reported."""

    error: BaseException
    trace: TracebackType | None
    note: str = ""  # further information: written to stderr, after the error


class PeerNews:
    """The death of another rank, as the agent reports it."""

    def __init__(self) -> None:
        self._has_come = threading.Event()
        self._text = ""

    def lost(self, text: str) -> None:
        """Record a death; `text` names the rank and the cause (side thread)."""
        self._text = text
        self._has_come.set()

    def all_live(self) -> None:
        """Forget the death: the process group was re-created."""
        self._has_come.clear()

    @property
    def known(self) -> str:
        """Return the text; empty before it has arrived."""
        return self._text if self._has_come.is_set() else ""

    def wait(self) -> str | None:
        """Return the text as soon as it has arrived; None if it does not arrive in time."""
        return self._text if self._has_come.wait(PEER_NEWS_SECONDS) else None


def never_completed(operation: str, news: PeerNews) -> RuntimeError:
    """Return the error of a cell whose collective returned on a device without having completed."""
    return RuntimeError(
        f"{news.wait() or _LEFT}: {operation} never completed, and its result is undefined. {RE_CREATE}"
    )


def explain_failure(
    error: BaseException,
    trace: TracebackType | None,
    find: Callable[[BaseException], failures.Failure | None],
    news: PeerNews,
) -> ReportedError:
    """Explain the error of a collective, and name the rank that caused it, if the agent reports it in time.

    Only torch's own words about a lost connection are replaced: every other error is reported as it is.
    """
    failure = find(error)
    if failure is None and isinstance(error, ValueError) and _NO_GROUP in str(error):
        return ReportedError(error, trace, f"{news.known}. {RE_CREATE}" if news.known else "")
    if failure is None or (failure.kind == "other" and not failure.breaks_all):
        return ReportedError(error, trace)  # for example wrong arguments
    if failure.kind == "timed out":
        what_to_do = RE_CREATE if failure.breaks_all else _NEW_GROUP
        return ReportedError(error, trace, f"After a timeout a process group is unusable{_of(failure)}. {what_to_do}")
    known = news.wait()
    failure = find(error) or failure  # other connections may have been closed a moment later
    if known is None and not failure.breaks_all:
        return ReportedError(error, trace, f"{_LEFT}{_of(failure)}. {_NEW_GROUP}")
    reason = f"{known or _LEFT}. {RE_CREATE}"
    if failure.error is not error or failure.kind == "other":
        return ReportedError(error, trace, reason)
    # Without the port of the connection, which differs between ranks: the error of all of them is shown once.
    said = _PORT.sub("", failures.without_mark(str(error)))
    return ReportedError(RuntimeError(f"{reason}\n(torch said: {said})"), tracebacks.before(trace, "torch"))


def _of(failure: failures.Failure) -> str:
    """Return the process group of a failure, as the end of a phrase."""
    return "" if failure.group is None else f" ({torch_compat.describe_group(failure.group).description})"
