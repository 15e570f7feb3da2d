"""The errors of a start that failed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.states import STARTING_RANK_STATES

if TYPE_CHECKING:
    from .rank_process import RankProcess


def died_early(rank: RankProcess) -> JupyterDistError:
    """Return the error for a rank that died before the process group was formed."""
    assert rank.exit is not None
    ended = rank.exit["reason"]
    why = say("%1 (%2)", ended, rank.failure) if rank.failure else ended
    message = say("Rank %1 %2 while the group started.", rank.rank, why)
    return JupyterDistError("start_failed", message, rank.last_words.lines())


def too_late(ranks: Sequence[RankProcess], seconds: float) -> JupyterDistError:
    """Return the error for a process group that was not formed in time."""
    late = [f"rank {rank.rank} is {rank.state}" for rank in ranks if rank.state in STARTING_RANK_STATES]
    return JupyterDistError("start_failed", f"The group did not form within {seconds:g} s: {', '.join(late[:4])}.")


def check_folder(cwd: str) -> None:
    """Raise JupyterDistError `bad_directory` if new ranks cannot begin in the group's folder."""
    problem = None if os.path.isdir(cwd) else "is gone"
    if problem is None and not os.access(cwd, os.X_OK):
        problem = "cannot be entered"
    if problem is not None:
        message = f"The group's folder {cwd} {problem}: no new rank can begin there. Nothing was ended."
        raise JupyterDistError("bad_directory", message, "Make it available again, or start another group elsewhere.")
