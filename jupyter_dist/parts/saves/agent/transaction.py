"""Whether all ranks have prepared a save or a restore, so that it may count. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from jupyter_dist.protocol.ranks import RankSet

if TYPE_CHECKING:
    from jupyter_dist.parts.saves.transfer import TransferNews

# open: ranks prepare. deciding: all are prepared, and a save is made to exist. kept and dropped are final.
Phase = Literal["open", "deciding", "kept", "dropped"]

MAX_NAMED = 8


class Transaction:
    """Two phases over all ranks: each prepares and waits; when all have, all keep it, and else all drop it."""

    def __init__(self, ranks: Iterable[int]) -> None:
        self.ranks = RankSet(ranks)
        self.phase: Phase = "open"
        self.reports: dict[int, dict[str, str | int]] = {}  # of ranks that are prepared
        self.reason = ""  # why it is dropped
        self.interrupted = False
        self._news: dict[int, TransferNews] = {}

    @property
    def done_bytes(self) -> int:
        """Return how much all ranks together have handled."""
        return sum(news["done"] for news in self._news.values())

    @property
    def total_bytes(self) -> int:
        """Return how much all ranks together have, as far as they have counted."""
        return sum(news["total"] for news in self._news.values())

    @property
    def written_bytes(self) -> int:
        """Return how much all ranks together have written."""
        return sum(news["written"] for news in self._news.values())

    @property
    def unprepared(self) -> RankSet:
        """Return the ranks that still prepare."""
        return self.ranks - self.reports.keys()

    def unfinished(self) -> str:
        """Return how far the ranks are that still prepare, as a sentence."""
        parts = [f"rank {rank} had done {self._share(rank)}" for rank in list(self.unprepared)[:MAX_NAMED]]
        more = len(self.unprepared) - len(parts)
        text = "; ".join([*parts, *([f"{more} more ranks had not ended"] if more > 0 else [])])
        return f"{text[0].upper()}{text[1:]}." if text else "All ranks had written their parts."

    def _share(self, rank: int) -> str:
        news = self._news.get(rank)
        return f"{news['done'] / 1e6:.1f} of {news['total'] / 1e6:.1f} MB" if news else "nothing yet"

    def take(self, rank: int, news: TransferNews) -> bool:
        """Take in the news of a rank; return True if all ranks are prepared by it."""
        if rank not in self.ranks or rank in self.reports:
            return False
        self._news[rank] = news
        if news["state"] == "prepared":
            self.reports[rank] = dict(news.get("report") or {})
        if self.phase == "open" and not self.unprepared:
            self.phase = "deciding"
            return True
        return False

    def keep(self) -> bool:
        """Let the transaction count; return False if it was dropped meanwhile."""
        if self.phase != "deciding":
            return False
        self.phase = "kept"
        return True

    def drop(self, reason: str, *, interrupted: bool = False) -> bool:
        """Drop the transaction unless it has been decided; return whether this call dropped it."""
        if self.phase not in ("open", "deciding"):
            return False
        self.phase, self.reason, self.interrupted = "dropped", reason, interrupted
        return True
