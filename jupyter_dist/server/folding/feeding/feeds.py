"""The feeds of a view. Ranks with the same output so far share a feed, so a thousand ranks cost as much as a few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.server.folding.fold import Fold, lowest

from .rankfeed import Limits, RankFeed


class Feeds:
    """A feed for each rank of a view, and for each other rank that has sent output."""

    def __init__(self, ranks: RankSet, fold: Fold) -> None:
        self._fold = fold
        self._limits = Limits.for_ranks(len(ranks))
        self._mask = mask_of(ranks)
        self._by_rank: dict[int, RankFeed] = {}
        if ranks:
            self._by_rank = dict.fromkeys(ranks, RankFeed(self._mask, fold, self._limits))

    def __iter__(self) -> Iterator[RankFeed]:
        """Yield each feed once, by lowest rank."""
        return self._in(self._mask)

    def ranks(self) -> list[int]:
        """Return all ranks, in order."""
        return sorted(self._by_rank)

    def of(self, ranks: Sequence[int]) -> Iterator[RankFeed]:
        """Yield feeds that have these ranks only, split from other ranks where needed; all may be fed the same."""
        wanted = mask_of(ranks)
        if len(ranks) == 1 and (alone := self._by_rank.get(ranks[0])) is not None and alone.mask == wanted:
            yield alone
            return
        self._add(wanted & ~self._mask)
        for feed in self._in(wanted):
            yield self._split(feed, feed.mask & wanted)

    def unsettled(self, ranks: Sequence[int]) -> Iterator[RankFeed]:
        """Yield the feeds of these ranks only that have an unfinished line or character."""
        wanted = mask_of(ranks)
        for feed in self.within(ranks):
            if not feed.is_settled:
                yield self._split(feed, feed.mask & wanted)

    def within(self, ranks: Sequence[int]) -> Iterator[RankFeed]:
        """Yield the feeds of these ranks, which may have other ranks with the same output, too."""
        return self._in(mask_of(ranks) & self._mask)

    def _in(self, mask: int) -> Iterator[RankFeed]:
        while mask:
            feed = self._by_rank[lowest(mask)]
            mask &= ~feed.mask
            yield feed

    def _add(self, mask: int) -> None:
        """Add feeds of ranks that are not part of the execution: a thread of an earlier cell can write on them."""
        self._mask |= mask
        while mask:
            bit = mask & -mask
            self._by_rank[lowest(mask)] = RankFeed(bit, self._fold, self._limits)
            mask ^= bit

    def _split(self, feed: RankFeed, mask: int) -> RankFeed:
        """Split these ranks from a feed, and return their feed."""
        if mask == feed.mask:
            return feed
        # The smaller part becomes the new one.
        part = mask if 2 * mask.bit_count() <= feed.mask.bit_count() else feed.mask ^ mask
        new = feed.split(part)
        while part:
            self._by_rank[lowest(part)] = new
            part &= part - 1
        return new if new.mask == mask else feed


def mask_of(ranks: Sequence[int]) -> int:
    """Return the bit mask of ranks, which are in order."""
    if ranks and ranks[-1] - ranks[0] == len(ranks) - 1:  # ranks are in order, each once
        return ((1 << len(ranks)) - 1) << ranks[0]
    mask = 0
    for rank in ranks:
        mask |= 1 << rank
    return mask
