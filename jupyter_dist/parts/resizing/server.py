"""Carries a resize out: chooses the devices of new ranks, and asks the group's agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.models.sentences import join, say, say_n
from jupyter_dist.protocol.wire.requests import MAX_CPU_RANKS, MAX_GROUP_RANKS
from jupyter_dist.protocol.wire.specs import LOCAL
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.groups.resolve import Devices, how_given, names_of
from jupyter_dist.server.part import ServerPart


class ResizeOperation(ServerPart):
    """Resizes groups."""

    async def resize(
        self,
        group: ManagedGroup,
        num_ranks: int,
        devices: list[int] | None = None,
        others: str = "refuse",
        key: str | None = None,
    ) -> models.GroupModel:
        """Change the number of ranks; ranks that stay keep their processes and variables.

        Raises:
            JupyterDistError: `group_not_ready`, `bad_request`, `bad_devices` or `bad_environment`.
        """
        usable = await self.manager.devices.usable(group.status.fields["spec"]["accelerator"])
        wanted = resolve_size(group.status.fields, num_ranks, devices, usable)
        return await group.changed_by("resize", key=key, others=others, **wanted)


def resolve_size(
    status: Mapping[str, Any], num_ranks: int, devices: list[int] | None, usable: Devices
) -> dict[str, Any]:
    """Return the size that a group is to have, with the devices of its new ranks.

    Args:
        status: the group, as its agent reports it.
        num_ranks: how many ranks there are to be.
        devices: the devices of new ranks; by default the first that the group does not use.
        usable: the devices of this machine that ranks may use.

    Raises:
        JupyterDistError: `bad_request` or `bad_devices`.
    """
    spec, accelerator = status["spec"], ACCELERATORS[status["spec"]["accelerator"]]
    num_living = sum(rank["state"] != "dead" for rank in status["ranks"])
    num_new = max(0, num_ranks - num_living)
    on_nodes = spec.get("launcher", LOCAL) != LOCAL
    most = MAX_GROUP_RANKS if on_nodes else MAX_CPU_RANKS
    if not 1 <= num_ranks <= most:
        raise bad_request(say("'num_ranks' is %1.", num_ranks), say("It must be from 1 to %1.", most))
    if not accelerator.has_devices or not num_new or on_nodes:
        if devices:
            raise JupyterDistError("bad_devices", say("'devices' was given, but there is nothing to choose."))
        return {"num_ranks": num_ranks}
    if len(set(spec["devices"])) < len(spec["devices"]):
        hint = say("Start another group with the devices that it is to have.")
        raise JupyterDistError("bad_devices", say("Ranks of this group share a device: none can be added."), hint)
    here = usable[accelerator.name]
    living = {rank["rank"] for rank in status["ranks"] if rank["state"] != "dead"}
    used = [device for number, device in enumerate(spec["devices"]) if number in living]
    free = [device for device in here if device not in used]
    wanted = free[:num_new] if devices is None else devices
    if len(wanted) != num_new or len(set(wanted)) < num_new or not set(wanted) <= set(free):
        there = say_n("%1 is free: %2", "%1 are free: %2", len(free), ", ".join(map(str, free)))
        message = say(
            "%1 new ranks need a device each; of the devices that the group does not use, %2.",
            num_new,
            there if free else say("none is free"),
        )
        raise JupyterDistError("bad_devices", message, join(how_given(accelerator), say("Choose fewer ranks.")))
    return {"num_ranks": num_ranks, "devices": wanted, "device_names": names_of(here, wanted)}
