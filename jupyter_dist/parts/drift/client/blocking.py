"""Methods of Group that show output while a cell runs."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_dist.client.blocking.group import Group
from jupyter_dist.client.results.result import RankError
from jupyter_dist.protocol.errors import JupyterDistError

from .results import CatchUpError, CaughtUp, Step


def catch_up(group: Group, steps: Sequence[Step] | None = None) -> CaughtUp:
    """Run cells on the ranks that have missed them, one after the other; see the asynchronous one."""
    found = CaughtUp()
    for step in found.runnable(group.drift().offered if steps is None else steps):
        try:
            found.append(group.run(step.code, step.ranks, ask_first=True))
            found[-1].raise_for_error()
        except RankError as err:
            raise CatchUpError(err, found) from err
        except JupyterDistError as err:
            found.refused(step, err)
    return found
