"""Methods of AsyncGroup."""

from __future__ import annotations

from typing import Literal

from jupyter_dist.client.asynchronous.group import AsyncGroup, left
from jupyter_dist.protocol.errors import JupyterDistError


async def park(group: AsyncGroup, to: Literal["host", "file"] = "host", folder: str | None = None) -> AsyncGroup:
    """Give the devices of an idle group back; its ranks keep all variables, and the next cell resumes it.

    Args:
        group: The group.
        to: Where tensors go: `host`, the memory of the machine, or `file`, which also frees the memory of a
            group on CPU.
        folder: For `file`: an absolute path on the machine of the ranks; by default the group's folder.

    Raises:
        JupyterDistError: `group_not_ready`, if it is not idle, holds no devices, or there is no room.
    """
    group.model = await group.ask("park", to=to, folder=folder)
    await left(group, "parking")
    if group.model["state"] not in ("parked", "resuming"):
        message = f"Group '{group.name}' is {group.model['state']}. {group.model['note'] or ''}".strip()
        raise JupyterDistError("group_not_ready", message, "See its log.")
    return group


async def resume(group: AsyncGroup) -> AsyncGroup:
    """Bring the tensors of a parked group back to its devices, as a cell does, too; returns when it is ready.

    Raises:
        JupyterDistError: `group_not_ready`, if that failed; the group stays parked then, and keeps all variables.
    """
    group.model = await group.ask("resume")
    for state in ("parking", "parked", "resuming"):
        if group.model["state"] == state != "parked":
            await left(group, state)
    if group.model["state"] == "parked":
        message = group.model["note"] or f"Group '{group.name}' could not be resumed."
        raise JupyterDistError("group_not_ready", message, "Try again.")
    return group
