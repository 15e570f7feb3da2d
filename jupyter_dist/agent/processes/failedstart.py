"""The errors of a start that failed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say
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
    late = [say("rank %1 is %2", rank.rank, rank.state) for rank in ranks if rank.state in STARTING_RANK_STATES]
    return JupyterDistError(
        "start_failed", say("The group did not form within %1 s: %2.", f"{seconds:g}", join(*late[:4], by=", "))
    )


def check_folder(cwd: str) -> None:
    """Raise JupyterDistError `bad_directory` if new ranks cannot begin in the group's folder."""
    message = None
    if not os.path.isdir(cwd):
        message = say("The group's folder %1 is gone: no new rank can begin there. Nothing was ended.", cwd)
    elif not os.access(cwd, os.X_OK):
        message = say("The group's folder %1 cannot be entered: no new rank can begin there. Nothing was ended.", cwd)
    if message is not None:
        hint = say("Make it available again, or start another group elsewhere.")
        raise JupyterDistError("bad_directory", message, hint)
