"""What a group does by itself about saves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.part import AgentCore, AgentPart

from .beforeend import SaveBeforeEnd
from .periodic import PeriodicSaves


class SavesAgent(AgentPart):
    """Saves the group every so often, and before its allocation ends."""

    def __init__(self, core: AgentCore) -> None:
        super().__init__(core)
        self._periodic = PeriodicSaves(core.group)
        self._before_end = SaveBeforeEnd(core.group, core.interrupt)

    def changed(self, execution: AgentExecution) -> None:
        """Follow the saves, and note that cells have run."""
        self._periodic.changed(execution)
        self._before_end.changed(execution)

    def tick(self, _: float) -> None:
        """Begin the saves that are due."""
        self._periodic.look()
        self._before_end.look()

    def ends(self, at: float | None) -> None:
        """Take the time before which the group is saved."""
        self._before_end.ends(at)

    def nodes_end(self) -> bool:
        """Save the group first, if that is possible."""
        return self._before_end.asked_to_end()

    def group_fields(self) -> Mapping[str, Any]:
        """Return when the group saves by itself; None if it does not."""
        model = self._periodic.model()
        self._before_end.add_to(model)
        return {"self_saving": model if model["every_seconds"] or "ends_at" in model else None}
