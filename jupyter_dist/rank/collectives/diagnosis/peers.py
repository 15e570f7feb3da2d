"""The peer with which a send or recv exchanges its tensor: torch's Work for it does not contain the peer."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch.distributed as dist

from jupyter_dist.rank.collectives import torch_compat

from . import counters

INTERRUPTIBLE = True  # cells wait below these functions


class Peer(NamedTuple):
    """The other rank of a send or recv, None if it may be any, and the tag of the message."""

    group: Any
    rank: int | None
    tag: int | None


_known: WeakKeyDictionary[Any, Peer] = WeakKeyDictionary()


def install() -> None:
    """Remember the peer of each send and recv, as long as its Work exists, and count them."""
    group_class: Any = dist.ProcessGroup
    for name in ("send", "recv", "recv_anysource"):
        if hasattr(group_class, name):
            setattr(group_class, name, _noted(getattr(group_class, name), name != "recv_anysource"))


def of(work: Any) -> Peer | None:
    """Return with which rank a Work exchanges its tensor; None if that is not known (any thread)."""
    try:
        return _known.get(work)
    except (TypeError, RuntimeError):  # no Work, or the main thread makes one now
        return None


def _noted(method: Callable[..., Any], names_peer: bool) -> Callable[..., Any]:
    @functools.wraps(method)
    def noted(group: Any, tensors: Any, *arguments: Any) -> Any:
        before = counters.count_of_gloo(group)
        work = method(group, tensors, *arguments)
        counters.note_message(group, before)
        with contextlib.suppress(TypeError, ValueError, IndexError, AttributeError):
            *peer, tag = arguments
            rank = torch_compat.describe_group(group).members[peer[0]] if names_peer else None
            _known[work] = Peer(group, rank, tag)
        return work

    return noted
