"""The magics that the kernel answers itself, with the words of `%load_ext jupyter_dist`; other cells are for ranks."""

from __future__ import annotations

import re
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

from jupyter_dist.magics.automode import AutoMode, with_space
from jupyter_dist.magics.base import RankMagics
from jupyter_dist.magics.completion import RankNames
from jupyter_dist.magics.distmagics import DistMagics
from jupyter_dist.magics.extension import vocabularies
from jupyter_dist.magics.failures import DistError, sentences
from jupyter_dist.magics.session import Session
from jupyter_dist.protocol.parts import find_parts

_LINE = re.compile(r"%(\w+)\s*(.*)")
_CELL = re.compile(r"%%(\w+)\s*(.*)")
_LOADING = re.compile(r"%(?:re)?load_ext\s+jupyter_dist\s*$")


class KernelMagics(DistMagics):
    """DistMagics, and the magics of parts, where no process but the ranks runs cells."""

    def __init__(self, session: Session) -> None:
        auto = AutoMode()
        shell = SimpleNamespace(user_ns={}, configurables=[])
        super().__init__(shell, session, auto, RankNames(session, auto))
        for magics in find_parts("magics", RankMagics).classes.values():
            for kind, methods in magics(shell, session, auto).magics.items():
                self.magics[kind].update(methods)

    after_init = "Cells run on all ranks; %%rank [0,2] selects ranks."
    after_end = "The next cell starts a new one."

    @sentences
    def dist_mode(self, line: str) -> None:
        """Print where cells run."""
        if "-d" in line.split() or "--disable" in line.split():
            raise DistError("The kernel Ranks runs all cells on ranks. For cells that are not, choose another kernel.")
        print(self.mode())

    def mode(self) -> str:
        """Return a sentence about where cells run."""
        return self.after_init

    def call(self, name: str, *arguments: str) -> None:
        """Call a magic by its name."""
        method: Any = self.magics["cell" if len(arguments) == 2 else "line"][name]
        method(*arguments)

    def help_of(self, name: str) -> str | None:
        """Return the help text of `%name?`; None for a magic of another package."""
        method = self.magics["line"].get(name) or self.magics["cell"].get(name)
        return None if method is None else str(method.__doc__)


class Parts(NamedTuple):
    """A cell in two parts: the magics that the kernel runs, and the code that ranks run."""

    lines: list[tuple[str, str]]  # line magics and their arguments
    cell: tuple[str, str] | None  # a cell magic around the code
    code: str

    @property
    def is_for_ranks(self) -> bool:
        """Whether there is code besides comments."""
        return any(line.strip() and not line.lstrip().startswith("#") for line in self.code.splitlines())


def parts(code: str, magics: KernelMagics) -> Parts:
    """Part a cell. Our line magics are ours at its beginning; later ones are an error on the ranks."""
    lines = with_space(code.splitlines(keepends=True))
    found: list[tuple[str, str]] = []
    for number, line in enumerate(lines):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if (match := _CELL.match(text)) is not None:
            if match[1] in magics.magics["cell"]:
                return Parts(found, (match[1], match[2]), "".join(lines[number + 1 :]))
            _refuse_others(match[1])
            break
        match = _LINE.match(text)
        if match is None or text.endswith("?"):
            break
        if _LOADING.match(text):  # the magics are there
            lines[number] = "\n"
            continue
        if match[1] not in magics.magics["line"]:
            _refuse_others(match[1])
            break
        found.append((match[1], match[2]))
        lines[number] = "\n"  # line numbers of tracebacks stay
    return Parts(found, None, "".join(lines))


@cache
def _names_of_vocabularies() -> frozenset[str]:
    """Return the names of all magics that entry points add to a Python kernel; packages are looked up once."""
    kinds = [names for magics in vocabularies().values() for names in magics.magics.values()]
    return frozenset(name for names in kinds for name in names)


def _refuse_others(name: str) -> None:
    """Raise DistError for magics of a vocabulary, which move code and values between a Python kernel and ranks."""
    if name in _names_of_vocabularies():
        raise DistError(
            f"'{name}' is for a Python kernel beside the ranks. The kernel Ranks has %%rank, %%distributed and %dist_*."
        )
