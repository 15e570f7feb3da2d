"""Methods of Group that show output while a cell runs."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_dist.client.blocking.group import Group

from .results import CaughtUp, Step


def catch_up(group: Group, steps: Sequence[Step] | None = None) -> CaughtUp:
    """Run cells on the ranks that have missed them, one after the other; see the asynchronous one."""
    found = CaughtUp()
    for step in found.runnable(group.drift().offered if steps is None else steps):
        with found.running(step):
            found.append(group.run(step.code, step.ranks, ask_first=True))
            found[-1].raise_for_error()
    return found
