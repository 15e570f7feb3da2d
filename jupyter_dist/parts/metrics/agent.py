"""Reports how many verdicts on cells a group has shown, and how many were refuted: only its agent knows."""

from __future__ import annotations

from typing import Any

from jupyter_dist.agent.part import AgentPart


class VerdictCountsPart(AgentPart):
    """Adds the numbers of verdicts to the status of a group."""

    def status(self) -> dict[str, Any] | None:
        """Return the numbers since the group began."""
        proving = self.core.proving
        return {"verdicts_shown": proving.num_shown, "verdicts_refuted": proving.num_refuted}
