"""Methods of Group that show output while a cell runs."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_dist.client.blocking.group import Group

from .results import CaughtUp, Step


def catch_up(group: Group, steps: Sequence[Step] | None = None) -> CaughtUp:
    """Run cells on the ranks that have missed them, one after the other; return the results.

    A cell that calls a collective, and would wait for the other ranks, is not run, nor are cells that use
    names which it sets or changes: they are in `not_run` of the returned object.

    Args:
        group: The group of these ranks.
        steps: Steps of `drift()` to run; by default its `offered` ones, which replaced ranks have missed.

    Raises:
        CatchUpError: a cell failed; later cells did not run. Its `caught_up` has the results so far.
    """
    found = CaughtUp()
    for step in found.runnable(group.drift().offered if steps is None else steps):
        with found.running(step):
            found.append(group.run(step.code, step.ranks, ask_first=True))
            found[-1].raise_for_error()
    return found
