"""Methods of AsyncGroup."""

from __future__ import annotations

from jupyter_dist.client.answers import infos
from jupyter_dist.client.asynchronous.group import AsyncGroup


async def peek(group: AsyncGroup, *names: str, ranks: str = "all") -> infos.PeekedInfo:
    """Return the values of names on ranks, also while these run a cell; without names, of the running function.

    Args:
        group: The group of these ranks.
        names: Names such as `loss`, `model.weight` or `state['lr']`.
        ranks: A rank expression.
    """
    return await group.peek_values(", ".join(names), ranks)
