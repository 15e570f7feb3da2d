"""Decides which cells run on the ranks by default, after `%dist_init` or `%autodip on`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from contextvars import ContextVar

from jupyter_dist.protocol.parts import body_magics

from .linemagics import places, runs_on_ranks

_RANK = re.compile(r"%%rank(?=[^\w\s])")
_LOCAL_COMMENT = re.compile(r"#\s*dip_locally\b")

# One per thread: subshells of ipykernel run cells at the same time.
_SUSPENDED: ContextVar[bool] = ContextVar("_SUSPENDED", default=False)


class AutoMode:
    """An input transformer that adds a cell magic to cells that do not choose where to run."""

    def __init__(self) -> None:
        self.prefix: str | None = None  # the cell magic with its arguments, without %%; None: cells run in the kernel

    def __call__(self, lines: list[str]) -> list[str]:
        """Called by IPython with every cell."""
        lines = with_space(lines)
        if self.prefix is None or _SUSPENDED.get():
            return lines
        if goes_to_ranks(lines):
            return [self._on_ranks(lines)]
        if not _has_line_magics_only(lines):
            return lines
        place = places(lines, self.prefix)
        said = [f"__import__('sys').stdout.write({place.sentence!r}) and None\n"] if place.sentence else []
        return [*said, *_ended(place.kernel), *([self._on_ranks(place.ranks)] if place.ranks else [])]

    def _on_ranks(self, lines: list[str]) -> str:
        magic, _, line = (self.prefix or "").partition(" ")
        # A call, not `%%magic`, for which IPython in a terminal would wait for an empty line.
        return f"get_ipython().run_cell_magic({magic!r}, {line!r}, {''.join(lines)!r})\n"

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Leave code alone that a magic runs in the kernel; the mode itself may change meanwhile."""
        before = _SUSPENDED.set(True)
        try:
            yield
        finally:
            _SUSPENDED.reset(before)


def goes_to_ranks(lines: list[str]) -> bool:
    """Whether a cell runs on the ranks in auto mode: not if it is empty, for a kernel magic, or chooses itself."""
    if any(_LOCAL_COMMENT.match(line) for line in lines[:1]):
        return False
    code = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not code:
        return False
    first = code[0]
    if first.startswith("%%"):  # these time or capture the cell, so they run on the ranks, too
        return first[2:].partition(" ")[0] in body_magics()
    # Line magics alone run in the kernel (%pip, %load_ext, ours), unless they run code; before code they run with it
    # (%matplotlib inline).
    only_magics = all(line.startswith("%") for line in code)
    return not ((only_magics and not all(map(runs_on_ranks, code))) or _is_ours(first))


def _has_line_magics_only(lines: list[str]) -> bool:
    if any(_LOCAL_COMMENT.match(line) for line in lines[:1]):
        return False
    code = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return bool(code) and all(line.startswith("%") and not line.startswith("%%") for line in code)


def _ended(lines: list[str]) -> list[str]:
    """Return lines of which the last ends with a line break, too."""
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]


def _is_ours(line: str) -> bool:
    return re.match(r"%(dist_|dip|autodip|makedip|sync\b|timeline_|(re|un)?load_ext\b)", line) is not None


def with_space(lines: list[str]) -> list[str]:
    """`%%rank[0,1]` means `%%rank [0,1]`."""
    return [_RANK.sub("%%rank ", lines[0], count=1), *lines[1:]] if lines else lines
