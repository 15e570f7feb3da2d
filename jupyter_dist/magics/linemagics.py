"""Where line magics run that stand alone in a cell, while cells run on the ranks. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

# They run the user's code, or show the variables that it made: they go to the ranks, as the code itself would.
ON_RANKS = frozenset(
    {
        *("run", "time", "timeit", "prun", "debug", "tb", "macro"),
        *("who", "who_ls", "whos", "psearch", "reset", "reset_selective", "xdel"),
    }
)
# They change how later code runs, in the kernel and on the ranks.
SETTINGS = frozenset(
    {
        *("cd", "pushd", "popd", "env", "set_env", "autoreload", "aimport", "config", "precision", "xmode", "colors"),
        *("pdb", "matplotlib", "pylab", "autoawait", "autocall", "alias", "unalias", "load_ext autoreload"),
        "reload_ext autoreload",
    }
)

_LOADS = re.compile(r"%(re)?load_ext\s+(?!jupyter_dist\b|autoreload\b)\w")
_READS_ENV = re.compile(r"%env(\s+[^\s=]+)?\s*$")
_EXPANDS = re.compile(r"\$\w|\{")  # names in a magic's arguments stand for variables, which are on the ranks


class Places(NamedTuple):
    """The lines of a cell that run in the kernel, and the lines that run on the ranks."""

    kernel: list[str]
    ranks: list[str]
    sentence: str  # for the user; empty if it is as the user expects


def places(lines: list[str], ranks_magic: str) -> Places:
    """Split a cell that has only line magics and comments into a part for the kernel and a part for the ranks.

    Args:
        lines: the cell; lines that run elsewhere are empty in each part, so that line numbers stay.
        ranks_magic: the cell magic that runs a cell on the ranks, with its arguments.
    """
    kinds = [_kind(line.strip()) for line in lines]
    if "both" not in kinds:
        return Places(lines, [], _why_here(lines, kinds, ranks_magic))
    stays = "kernel" in kinds
    there = [line if kind == "both" or (kind == "ranks" and not stays) else "\n" for line, kind in _with(lines, kinds)]
    here = [line if stays or kind in ("both", "") else "\n" for line, kind in _with(lines, kinds)]
    names = _names([line for line, kind in _with(lines, kinds) if kind == "both"])
    sentence = f"{names} in the kernel and on the ranks.\n"
    return Places(here, there, sentence + _why_here(lines, kinds, ranks_magic))


def runs_on_ranks(line: str) -> bool:
    """Whether a line magic runs on the ranks, where it does not stand beside one of the kernel's."""
    return _kind(line) == "ranks"


def _kind(line: str) -> str:
    if not line or line.startswith("#"):
        return ""
    word, _, rest = line[1:].partition(" ")
    if word in ON_RANKS or _READS_ENV.match(line):
        return "ranks"
    if word in SETTINGS or f"{word} {rest.strip()}" in SETTINGS:
        return "ranks" if _EXPANDS.search(rest) else "both"
    return "kernel"


def _with(lines: list[str], kinds: list[str]) -> list[tuple[str, str]]:
    return list(zip(lines, kinds, strict=True))


def _why_here(lines: list[str], kinds: list[str], ranks_magic: str) -> str:
    """Return a message about magics that run only in the kernel, where the user may mean the ranks."""
    said = ""
    code = [line for line, kind in _with(lines, kinds) if kind == "ranks"]
    if code and "kernel" in kinds:
        said = (
            f"{_names(code)} in the kernel, because other magics of this cell do. "
            "Alone in a cell it runs on the ranks.\n"
        )
    loads = [line.strip() for line in lines if _LOADS.match(line.strip())]
    if loads:
        said += f"{' and '.join(loads)}: in the kernel alone. Below a line with %%{ranks_magic}: on the ranks.\n"
    return said


def _names(lines: list[str]) -> str:
    """Return the magics of these lines as the subject of a sentence, with its verb."""
    names = list(dict.fromkeys(line.split()[0] for line in lines))
    return f"{', '.join(names[:-1])} and {names[-1]} run" if len(names) > 1 else f"{names[0]} runs"
