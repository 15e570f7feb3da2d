"""Names under which cells are compiled: IPython's, which a debugger that is attached later can find by the code."""

from __future__ import annotations

import re

from IPython.core.compilerop import CachingCompiler

from .ipython_compat import note_number

_NAME = re.compile(r"<ipython-input-(\d+)-\w+>")


class CellCompiler(CachingCompiler):
    """IPython's compiler of cells. It keeps the last name of each cell's code, and the number of each name."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, str] = {}
        self.numbers: dict[str, int] = {}
        self.current = ""  # the name of the cell that began last

    def cache(self, transformed_code: str, number: int = 0, raw_code: str | None = None) -> str:
        """Return the name of a cell that begins."""
        name = str(super().cache(transformed_code, number, raw_code))
        self.names[transformed_code if raw_code is None else raw_code] = self.current = name
        self.numbers[name] = number
        return name


def adopt(compiler: CachingCompiler, name: str) -> None:
    """Let a compiler know the name of a cell that ran in another process, if it is such a name."""
    if (found := _NAME.fullmatch(name)) is not None:
        note_number(compiler, name, int(found[1]))
        if isinstance(compiler, CellCompiler):
            compiler.numbers.setdefault(name, int(found[1]))


def readable(text: str) -> str:
    """Return a text in which cells are called as in tracebacks: Cell In[5]."""
    return _NAME.sub(r"Cell In[\1]", text)
