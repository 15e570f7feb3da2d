"""Decides which cells run on the ranks by default, after `%dist_init` or `%autodip on`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from contextvars import ContextVar

# Cells with these magics run on the ranks as a whole, so that they time, profile or capture the body there.
WHOLE_CELLS = frozenset({"time", "timeit", "prun", "capture", "profile"})
# Line magics that run the user's code: alone in a cell they go to the ranks, as the code itself would.
RUN_CODE = frozenset({"run", "time", "timeit", "prun"})

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
        if not goes_to_ranks(lines):
            return [*_warning(lines), *lines]
        magic, _, line = self.prefix.partition(" ")
        # A call, not `%%magic`, for which IPython in a terminal would wait for an empty line.
        return [f"get_ipython().run_cell_magic({magic!r}, {line!r}, {''.join(lines)!r})\n"]

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
    if first.startswith("%%"):
        return first[2:].partition(" ")[0] in WHOLE_CELLS
    # Line magics alone run in the kernel (%pip, %load_ext, ours), unless they run code; before code they run with it
    # (%matplotlib inline).
    only_magics = all(line.startswith("%") for line in code)
    return not ((only_magics and not all(map(_runs_code, code))) or _is_ours(first))


def _runs_code(line: str) -> bool:
    return line[1:].partition(" ")[0] in RUN_CODE


def _warning(lines: list[str]) -> list[str]:
    """Return a line that says why code in a cell of line magics runs in the kernel; none if there is no such code."""
    code = [line.strip() for line in lines if line.startswith("%")]
    found = [line for line in code if _runs_code(line)]
    if not found or code[0].startswith("%%") or any(_LOCAL_COMMENT.match(line) for line in lines[:1]):
        return []
    name = found[0].split()[0]
    sentence = (
        f"{name} runs in the kernel, because other magics of this cell do. Alone in a cell it runs on the ranks.\n"
    )
    return [f"__import__('sys').stderr.write({sentence!r}) and None\n"]


def _is_ours(line: str) -> bool:
    return re.match(r"%(dist_|dip|autodip|makedip|sync\b|timeline_|(re|un)?load_ext\b)", line) is not None


def with_space(lines: list[str]) -> list[str]:
    """`%%rank[0,1]` means `%%rank [0,1]`."""
    return [_RANK.sub("%%rank ", lines[0], count=1), *lines[1:]] if lines else lines
