"""The questions that the ranks of one execution wait to have answered. Pure."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.models.sentences import say, say_n
from jupyter_dist.protocol.ranks import RankSet

if TYPE_CHECKING:
    from jupyter_dist.protocol.models import models
    from jupyter_dist.protocol.wire import road

_seqs = itertools.count(1)  # of all questions of this agent


class Asked(NamedTuple):
    """A question of one rank."""

    seq: int
    number: int  # the rank's own
    prompt: str
    password: bool
    since: float


class Asking:
    """At most one question per rank: its code waits."""

    def __init__(self) -> None:
        self._asked: dict[int, Asked] = {}

    def __contains__(self, rank: int) -> bool:
        return rank in self._asked

    def add(self, rank: int, number: int, question: road.InputQuestion) -> None:
        """Add the question of a rank."""
        self._asked[rank] = Asked(next(_seqs), number, question["prompt"], question["password"], time.time())

    def drop(self, rank: int) -> bool:
        """Forget the question of a rank that waits no longer; return whether there was one."""
        return self._asked.pop(rank, None) is not None

    def take(self, ranks: Iterable[int] | None, seq: int | None) -> dict[int, Asked]:
        """Remove and return the questions that an answer is for: the first answer wins.

        Args:
            ranks: the ranks that the answer is for; by default all that ask, if they ask the same.
            seq: the last question that its author has seen; later ones are not answered.

        Raises:
            JupyterDistError: `not_asking`, if there is none; `bad_request`, if ranks ask different things.
        """
        wanted = list(self._asked if ranks is None else ranks)
        found = {rank: self._asked[rank] for rank in wanted if rank in self._asked}
        found = {rank: asked for rank, asked in found.items() if seq is None or asked.seq <= seq}
        if not found:
            raise not_asking(wanted, say("It has been answered already, or has gone on."))
        if ranks is None and len({(asked.prompt, asked.password) for asked in found.values()}) > 1:
            asks = "; ".join(f"{RankSet([rank])}: {asked.prompt[:60]!r}" for rank, asked in sorted(found.items()))
            raise bad_request(
                say("The ranks ask different things."), say("Say which ranks the answer is for: %1.", f"{asks:.500}")
            )
        for rank in found:
            del self._asked[rank]
        return found

    def model(self) -> list[models.InputPrompt]:
        """Return an entry for each question, with the ranks that ask it, in the order in which they began to ask."""
        alike: dict[tuple[str, bool], dict[int, Asked]] = {}
        for rank, asked in self._asked.items():
            alike.setdefault((asked.prompt, asked.password), {})[rank] = asked
        return [
            {
                "ranks": str(RankSet(by_rank)),
                "prompt": prompt,
                "password": password,
                "since": min(asked.since for asked in by_rank.values()),
                "seq": max(asked.seq for asked in by_rank.values()),
            }
            for (prompt, password), by_rank in alike.items()
        ]


def not_asking(ranks: Sequence[int], why: str) -> JupyterDistError:
    """Return the error for an answer that comes too late, or for which no rank has asked."""
    message = say("No rank asks for input.")
    if ranks:
        message = say_n("Rank %2 does not ask for input.", "Ranks %2 do not ask for input.", len(ranks), RankSet(ranks))
    return JupyterDistError("not_asking", message, why)
