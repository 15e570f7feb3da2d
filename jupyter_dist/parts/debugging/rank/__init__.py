"""The debugger of a rank, which is begun when a page asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.rank.guard.own import json
from jupyter_dist.rank.part import LaterRequest, RankCore, RankPart, Reply
from jupyter_dist.transport.frames import Header

if TYPE_CHECKING:
    from .dap import DebugSession


class RankDebugging(RankPart):
    """Answers `debug`, now or when the debugger has answered."""

    def __init__(self, core: RankCore) -> None:
        super().__init__(core)
        self._rank = core.spec.rank
        self._session: DebugSession | None = None

    def later_requests(self) -> Mapping[str, LaterRequest]:
        """Return the handler of `debug`."""
        return {"debug": self._debug}

    def _debug(self, _: Header, payload: bytes, reply: Reply) -> None:
        if self._session is None:
            from .dap import DebugSession  # few ask

            core = self.core
            self._session = DebugSession(self._rank, core.place, core.shell, core.when_idle, core.stopped)
        is_busy = self.core.running() is not None
        self._session.handle(json.loads(payload), is_busy, lambda message: reply({"reply": message}))

    def interrupted(self) -> None:
        """Let the stopped thread continue, so that the interrupt reaches its code."""
        if self._session is not None:
            self._session.release()

    def take_place(self, spec: RankSpec) -> None:
        """Have another number from now on."""
        self._rank = spec.rank
        if self._session is not None:
            self._session.rank = spec.rank
