"""`%%profile` on a rank: runs a cell under torch's profiler, and sends a summary and the trace of this rank."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping

from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.rank.part import RankCore, RankPart

from .sessions import Sessions


class ProfileRank(RankPart):
    """Profiles the cells of one rank."""

    def __init__(self, core: RankCore) -> None:
        super().__init__(core)
        self._spec = core.spec
        self._sessions = Sessions()

    def cell_magics(self) -> Mapping[str, Callable[[str, str], None]]:
        """Return `%%profile`."""
        return {"profile": self._run}

    def take_place(self, spec: RankSpec) -> None:
        """Take another number."""
        self._spec = spec

    def _run(self, line: str, cell: str) -> None:
        from .cell import Profiler  # few cells are profiled

        execution = self.core.running()

        def send(part: bytes, is_first: bool) -> None:
            if execution is not None:
                trace = {"execution_id": execution.execution_id, "is_first": is_first}
                self.core.send({**trace, "part": base64.b64encode(part).decode()})

        Profiler(self._spec, self._sessions, lambda summary: self.core.emit("profile", summary), send).run(line, cell)
