"""Parks and resumes groups for clients, and idle groups for one that starts on their devices."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.protocol.wire.specs import LOCAL
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.groups.resolve import WantedGroup
from jupyter_dist.server.part import ServerPart

PARK_SECONDS = 90.0  # of groups that a start parks: less than a client waits for its answer


class ParkingOperations(ServerPart):
    """Asks agents to park their groups."""

    async def park(
        self, group: ManagedGroup, to: str = "host", folder: str | None = None, key: str | None = None
    ) -> models.GroupModel:
        """Give the devices of an idle group back, which keeps all variables.

        Raises:
            JupyterDistError: `group_not_ready`, if it is not idle, holds no devices, or there is no room.
        """
        return await group.changed_by("park", key=key, to=to, folder=folder)

    async def resume(self, group: ManagedGroup, key: str | None = None) -> models.GroupModel:
        """Bring the tensors of a parked group back to its devices."""
        return await group.changed_by("resume", key=key)

    async def before_start(self, request: WantedGroup) -> None:
        """Park the groups that the start names."""
        await asyncio.gather(
            *(parked(group, PARK_SECONDS) for group in map(self.manager.get, request.options.get("park", ())))
        )

    def start_options(self, request: WantedGroup, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Have groups on CPU parked by themselves only if the start has the option."""
        is_chosen = "park_after_seconds" in request.options or ACCELERATORS[fields["accelerator"]].has_devices
        return {} if is_chosen else {"park_after_seconds": 0.0}

    def start_note(self, fields: Mapping[str, Any]) -> str | None:
        """Name idle groups on the devices of the group."""
        return sharing_note(fields, (group.model() for group in self.manager.all()))


async def parked(group: ManagedGroup, seconds: float) -> None:
    """Park a group, and wait until it is parked; a group that is parked already stays so.

    Raises:
        JupyterDistError: `group_not_ready`, if it is not idle, holds no devices, or there is no room; `timed_out`.
    """
    mirror = group.mirror
    await group.changed_by("park", to="host", folder=None)
    if not await mirror.wait_until(lambda: mirror.state != "parking", seconds):
        message = say("Group '%1' is still being parked after %2 s.", group.name, f"{seconds:.0f}")
        raise JupyterDistError("timed_out", message, say("Start again when it is parked."))
    if mirror.state != "parked":
        note = group.status.fields.get("note") or say("It is %1.", say(mirror.state))
        raise JupyterDistError(
            "group_not_ready", join(say("Group '%1' was not parked.", group.name), note), say("See its log.")
        )


def sharing_note(fields: Mapping[str, Any], groups: Iterable[models.GroupModel]) -> str | None:
    """Return a note about idle groups that hold devices of a new group, and could be parked; None if there is none.

    Args:
        fields: the GroupSpec of the new group.
        groups: the groups that run.
    """
    found = []
    for group in groups:
        shared = sorted(set(fields["devices"]) & set(group["devices"]))
        is_idle = group["state"] == "ready" and not group["running"] and not group["queued"]
        is_here = fields["launcher"] == LOCAL == group.get("launcher", LOCAL)
        if shared and is_idle and is_here and group["accelerator"] == fields["accelerator"]:
            found.append((group["name"], shared))
    if not found:
        return None
    who = "; ".join(f"'{name}' (device {', '.join(map(str, shared))})" for name, shared in found)
    verb = "Groups are idle and hold" if len(found) > 1 else "A group is idle and holds"
    return f"{verb} devices of this one, too: {who}. Park what you do not use: it keeps its variables."
