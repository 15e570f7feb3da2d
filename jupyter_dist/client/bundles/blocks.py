"""Puts the lines of each set of ranks together, for readers that show plain text.

A view aligns ranks line by line. In plain text that would separate lines that a rank printed at once, so lines that
differ are gathered in a block per set of ranks, up to the next line that these ranks have in common. A line that starts
with white space or a closing bracket continues the one before it (a tensor, a dictionary, a model), and so does one
after a colon, a comma or an opening bracket: it stays in the block of its ranks although other ranks wrote it, too. The
order of each rank's lines is kept.

The TypeScript counterpart is labextension/src/model/outputs/blocks.ts; both run tests/vectors/bundles.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from jupyter_dist.protocol.ranks import WHITE, RankSet

_CONTINUES = re.compile(rf"[{WHITE})\]}}]|\Z")
_EXPECTS_MORE = re.compile(rf"[:,(\[{{][{WHITE}]*\Z")


@dataclass
class _Block:
    ranks: RankSet
    lines: list[str]
    unit: int = 0  # where its last line starts that does not continue another

    def add(self, lines: list[str], continues: bool) -> None:
        if not continues:
            self.unit = len(self.lines)
        self.lines += lines


class Blocks:
    """Takes lines in the order of a view, and gives them in blocks."""

    def __init__(self) -> None:
        self.done: list[tuple[str, list[str]]] = []
        self._open: dict[RankSet, _Block] = {}  # of sets of ranks that have no rank in common
        self._of: dict[int, _Block] = {}  # the open block of each rank: there may be a thousand

    def add_text(self, ranks: str, text: str) -> None:
        """Add printed text of ranks."""
        members = RankSet.from_text(ranks)
        for line in text.split("\n"):
            self._add(members, [line], self._continues(members, line))

    def add_output(self, ranks: str, text: str) -> None:
        """Add a display or an error: its lines are never parted."""
        self._add(RankSet.from_text(ranks), text.split("\n"), False)

    def close(self) -> Iterator[tuple[str, list[str]]]:
        """Yield all blocks with their ranks; neighbours of the same ranks are one."""
        self._flush()
        last: tuple[str, list[str]] | None = None
        for ranks, lines in self.done:
            if last is not None and last[0] == ranks:
                last[1].extend(lines)
                continue
            if last is not None:
                yield last
            last = (ranks, list(lines))
        if last is not None:
            yield last

    def _add(self, ranks: RankSet, lines: list[str], continues: bool) -> None:
        block = self._open.get(ranks)
        if block is None and not (continues and self._continue(ranks, lines)):
            if self._touched(ranks):
                self._flush()
            block = self._begin(ranks, [])
        if block is not None:
            block.add(lines, continues)

    def _continues(self, ranks: RankSet, line: str) -> bool:
        """Whether a line belongs to the one before it."""
        if _CONTINUES.match(line):
            return True
        touched = self._touched(ranks)
        return bool(touched) and all(_EXPECTS_MORE.search(block.lines[-1]) for block in touched)

    def _touched(self, ranks: RankSet) -> list[_Block]:
        block = self._open.get(ranks)
        if block is not None:
            return [block]
        return list({found.ranks: found for rank in ranks if (found := self._of.get(rank)) is not None}.values())

    def _begin(self, ranks: RankSet, lines: list[str]) -> _Block:
        block = self._open[ranks] = _Block(ranks, lines)
        self._of.update(dict.fromkeys(ranks, block))
        return block

    def _continue(self, ranks: RankSet, lines: list[str]) -> bool:
        """Continue the current units of the ranks in other blocks; return whether that is possible."""
        touched = self._touched(ranks)
        if len(touched) == 1 and len(ranks) < len(touched[0].ranks) and not ranks - touched[0].ranks:
            self._split(touched[0], ranks)
            touched = [self._open[ranks]]
        if not touched or RankSet(rank for block in touched for rank in block.ranks) != ranks:
            return False
        for block in touched:
            block.add(lines, True)
        return True

    def _split(self, block: _Block, ranks: RankSet) -> None:
        """Split the last unit of a block, because some of its ranks continue differently."""
        if block.unit:
            self.done.append((str(block.ranks), block.lines[: block.unit]))
        del self._open[block.ranks]
        for part in sorted((ranks, block.ranks - ranks), key=min):
            self._begin(part, block.lines[block.unit :])

    def _flush(self) -> None:
        self.done += [(str(block.ranks), block.lines) for block in self._open.values()]
        self._open, self._of = {}, {}
