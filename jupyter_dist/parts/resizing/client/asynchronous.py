"""A method of AsyncGroup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from jupyter_dist.client.asynchronous.group import AsyncGroup, left
from jupyter_dist.protocol.errors import JupyterDistError


async def resize(
    group: AsyncGroup,
    num_ranks: int,
    *,
    others: Literal["refuse", "keep", "copy"] = "refuse",
    devices: Sequence[int] | None = None,
) -> AsyncGroup:
    """Change the number of ranks; ranks that stay keep their processes and variables.

    New ranks get copies of the names that all others have alike. Returns when all ranks have joined the new process
    group; `model["resized"]` lists what was copied, and what cells must make again.

    Args:
        group: The group.
        num_ranks: How many ranks there are to be.
        others: What happens to names that are not alike on all ranks. `refuse`: the group keeps its size.
            `keep`: new ranks lack them, and ranks that leave lose them. `copy`: new ranks get rank 0's.
        devices: The devices of new ranks; by default the first that the group does not use.

    Raises:
        JupyterDistError: the group has its earlier size and all variables: some names are not alike
            (`ranks_differ`), it cannot have another size now (`group_not_ready`, `bad_request`, `bad_devices`),
            or new ranks could not be started.
    """
    chosen = {} if devices is None else {"devices": list(devices)}
    group.model = await group.ask("resize", num_ranks=num_ranks, others=others, **chosen)
    await left(group, "resizing")
    fields: Mapping[str, Any] = group.model
    resized = fields.get("resized")
    if resized and resized["error"]:
        raise JupyterDistError.from_dict(resized["error"])
    return group
