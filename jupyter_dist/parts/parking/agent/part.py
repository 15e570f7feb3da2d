"""The requests and events of a group that can be parked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_dist.agent.contact.server_link import Answer, RequestHandler
from jupyter_dist.agent.part import AgentCore, AgentPart
from jupyter_dist.parts.parking.options import ParkingOptions
from jupyter_dist.protocol.states import AWAY_GROUP_STATES
from jupyter_dist.transport.frames import Header

from .parking import Parking


class ParkingOfGroup(AgentPart):
    """Parks the group on request, or when nobody has used it for long; a request or a cell resumes it."""

    def __init__(self, core: AgentCore) -> None:
        super().__init__(core)
        self._parking = Parking(core.group, self.options(ParkingOptions).park_after_seconds)

    def requests(self) -> Mapping[str, RequestHandler]:
        """Return the two requests of the server."""
        return {"park": self._park, "resume": self._resume}

    def used(self, *, by_cell: bool) -> None:
        """Count the time without use again; a cell resumes the group."""
        self._parking.used()
        if by_cell:
            self._parking.resume()

    def tick(self, now: float) -> None:
        """Park the group, if it has been idle for long enough."""
        self._parking.look()

    def group_fields(self) -> Mapping[str, Any]:
        """Return where its memory is."""
        return {"parked": self._parking.parked}

    def children(self) -> set[int]:
        """Return the process that asks the driver."""
        return self._parking.driver.children

    def restarts(self) -> None:
        """End the work under way."""
        self._parking.cancel()

    def stop(self) -> None:
        """End the work under way."""
        self._parking.cancel()

    def failed(self, reason: str) -> None:
        """Bring the memory back, if it is away: cells would wait for ever, because none resumes the group any more."""
        if self.core.group.state in AWAY_GROUP_STATES:
            self._parking.resume()

    async def _park(self, header: Header, _: bytes) -> Answer:
        await self._parking.park(header["to"], header.get("folder"))
        return self.core.group_answer()

    async def _resume(self, _header: Header, _: bytes) -> Answer:
        self._parking.resume()
        return self.core.group_answer()
