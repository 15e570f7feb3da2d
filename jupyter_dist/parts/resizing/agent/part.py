"""The request that resizes a group, and what the group shows of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jupyter_dist.agent.contact.server_link import Answer, RequestHandler
from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.part import AgentCore, AgentPart
from jupyter_dist.transport.frames import Header

from .resizing import Resize
from .shapes import WantedSize

if TYPE_CHECKING:
    from jupyter_dist.parts.resizing.models import ResizeModel

GIVE_UP_SECONDS = 2.0
POLL_SECONDS = 0.02


class ResizingOfGroup(AgentPart):
    """Changes the number of ranks."""

    def __init__(self, core: AgentCore) -> None:
        super().__init__(core)
        self._last: ResizeModel | None = None

    def requests(self) -> Mapping[str, RequestHandler]:
        """Return the request of the server."""
        return {"resize": self._resize}

    def group_fields(self) -> Mapping[str, Any]:
        """Return the last change, or the one under way."""
        return {"resized": self._last}

    async def _resize(self, header: Header, _: bytes) -> Answer:
        """Change the number of ranks; ranks that stay keep their processes and variables.

        Raises:
            JupyterDistError: `group_not_ready`, if the group starts or ends, or ranks are running cells; `bad_request`
                or `bad_environment`, if it cannot have that size.
        """
        group, starts = self.core.group, self.core.starts
        devices, names = (tuple(header.get(name) or ()) for name in ("devices", "device_names"))
        wanted = WantedSize(int(header["num_ranks"]), devices, names, str(header.get("others") or "refuse"))
        await give_up_lost_nodes(group, wanted.num_ranks)
        starts.check_may_change()
        if wanted.num_ranks > len(group.living()):
            starts.check_folder()
        resize = Resize(group, starts.starter, wanted)
        self._last = resize.report
        resize.begin()
        starts.begin(resize.run())
        return self.core.group_answer()


async def give_up_lost_nodes(group: AgentGroup, num_ranks: int) -> None:
    """Give up nodes whose link is lost, if the others have that many ranks; wait for the end of their ranks."""
    if group.nodes is None:
        return
    lost = [node for node in group.nodes.active if node.state == "unreachable"]
    numbers = {rank for node in lost for rank in node.ranks}
    if not lost or num_ranks > len([rank for rank in group.living() if rank.rank not in numbers]):
        return
    for node in lost:
        group.nodes.give_up(node)
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while time.monotonic() < deadline and (  # noqa: ASYNC110 - as `rejoin_with`: for a moment
        any(group.ranks[number].state != "dead" for number in numbers) or group.dispatcher.queue.in_state("running")
    ):
        await asyncio.sleep(POLL_SECONDS)
