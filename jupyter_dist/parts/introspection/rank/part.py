"""Answers `complete` and `inspect`: between cells from the shell, else at once with what needs no code of the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_dist.rank.part import RankPart, RankRequest
from jupyter_dist.transport.frames import Header

from . import completion, inspection


class RankIntrospection(RankPart):
    """Completions and documentation of the names of cells."""

    def idle_requests(self) -> Mapping[str, RankRequest]:
        """Return the handlers that ask the shell, which may run code of the user."""
        return {"complete": self._complete, "inspect": self._inspect}

    def busy_requests(self) -> Mapping[str, RankRequest]:
        """Return the handlers that look at names alone."""
        return {"complete": self._names, "inspect": self._glance}

    def _complete(self, header: Header, payload: bytes) -> Mapping[str, Any]:
        return completion.complete(self.core.shell, _text(payload), header["cursor_pos"])

    def _names(self, header: Header, payload: bytes) -> Mapping[str, Any]:
        return completion.names(self.core.namespace, _text(payload), header["cursor_pos"])

    def _inspect(self, header: Header, payload: bytes) -> Mapping[str, Any]:
        return inspection.look(self.core.shell, _text(payload), header["cursor_pos"], header["detail"])

    def _glance(self, header: Header, payload: bytes) -> Mapping[str, Any]:
        return inspection.glance(self.core.namespace, _text(payload), header["cursor_pos"])


def _text(payload: bytes) -> str:
    return payload.decode("utf-8", "replace")
