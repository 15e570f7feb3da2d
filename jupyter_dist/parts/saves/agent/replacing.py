"""New ranks in place of dead ones, with their variables of a save."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

from jupyter_dist.agent.group.replacing.variables import Given
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.system.limits import within

from .jobs import RestoreJob

MORE_SECONDS = 10.0  # how much longer than the time of a restore its answer may take


class SavedVariables:
    """New ranks get their variables of a save."""

    def __init__(self, job: RestoreJob) -> None:
        self._job = job

    async def look(self, survivors: Sequence[RankProcess]) -> None:
        """Do nothing: the save has been checked."""

    async def give(self, fresh: Sequence[RankProcess], survivors: Sequence[RankProcess]) -> Given:
        """Restore each new rank. Raises JupyterDistError, naming the first rank that could not be restored."""
        save, seconds = self._job.record.model, self._job.spec.timeout_seconds
        payload = json.dumps(self._job.call).encode()
        asked = (within(seconds, rank.request("restore_alone", seconds + MORE_SECONDS, payload)) for rank in fresh)
        answers: list[dict[str, Any]] = []
        for rank, answer in zip(fresh, await asyncio.gather(*asked, return_exceptions=True), strict=True):
            if isinstance(answer, BaseException):
                raise _not_restored(rank, answer, seconds)
            rank.covered = rank.covered_until(save["saved_at"])
            answers.append(dict(answer))
        again = [f"{one['name']} was not restored: {one['reason']}." for answer in answers for one in answer["failed"]]
        again += [f"{one.get('name', '')}: {one['reason']}." for one in _lacking(save, fresh)]
        names = sorted({str(name) for answer in answers for name in answer["names"]})
        at = time.strftime("%H:%M", time.localtime(save["saved_at"]))
        sentence = say("it has its variables of the save '%1' of %2; the other ranks keep theirs.", save["name"], at)
        return Given(names, list(dict.fromkeys(again)), join(sentence, *dict.fromkeys(again)))

    def close(self) -> None:
        """Allow chunks to be removed again."""
        self._job.drop()


def _lacking(save: Any, fresh: Sequence[RankProcess]) -> list[Any]:
    """Return the names that the save lacks on these ranks."""
    numbers = {rank.rank for rank in fresh}
    return [one for one in save["skipped"] if numbers & set(RankSet.from_text(one["ranks"]))]


def _not_restored(rank: RankProcess, error: BaseException, seconds: float) -> BaseException:
    if isinstance(error, asyncio.TimeoutError):
        message = say("Rank %1 was not restored within %2 s.", rank.rank, f"{seconds:g}")
        return JupyterDistError("not_restored", message, say("Replace it again with more time."))
    if isinstance(error, JupyterDistError):
        return JupyterDistError("not_restored", say("Rank %1: %2", rank.rank, error.message), error.hint)
    return error
