"""Begins with a group whose devices can report errors, and ends with it."""

from __future__ import annotations

from jupyter_dist.agent.part import AgentCore, AgentPart

from .watch import XidWatch


class XidsPart(AgentPart):
    """Listens for the errors of a group's devices."""

    def __init__(self, core: AgentCore) -> None:
        super().__init__(core)
        self._watch = XidWatch(core.group)
        self._watch.start()

    def stop(self) -> None:
        """Stop listening. Idempotent."""
        self._watch.stop()
