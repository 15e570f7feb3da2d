"""Its magics: `%dist_keep_undo`, `%dist_undo` and `%dist_redo`."""

from __future__ import annotations

from IPython.core.magic import line_magic, magics_class

from jupyter_dist.magics.base import RankMagics
from jupyter_dist.magics.failures import DistError, MagicParser, sentences, takes

from .text import undoable_text


def undo_parser() -> MagicParser:
    """Return the parser of `%dist_undo`."""
    parser = MagicParser("%dist_undo", description="Undo the last cells that kept undo, on all ranks that ran them.")
    parser.add_argument("count", nargs="?", type=int, default=1, help="how many cells (1)")
    parser.add_argument("-l", "--list", action="store_true", help="only list the cells that can be undone")
    return parser


def redo_parser() -> MagicParser:
    """Return the parser of `%dist_redo`."""
    parser = MagicParser("%dist_redo", description="Give variables what undone cells had left in them.")
    parser.add_argument("count", nargs="?", type=int, default=1, help="how many cells (1)")
    return parser


@magics_class
class UndoMagics(RankMagics):
    """Undo of cells in a kernel beside the ranks."""

    @line_magic
    @sentences
    def dist_keep_undo(self, line: str) -> None:
        """on: cells keep the state before them, so that %dist_undo can undo them; off: they do not; else print it."""
        word = line.strip()
        if word not in ("on", "off", ""):
            raise DistError(f"'{word}' is neither on nor off. Write %dist_keep_undo on.")
        if word:
            self.session.keep(keep_undo=word == "on")
        is_on = self.session.run_options.get("keep_undo")
        print("Cells keep undo: %dist_undo undoes the last one." if is_on else "Cells keep no undo.")

    @line_magic
    @sentences
    @takes(undo_parser)
    def dist_undo(self, line: str) -> None:
        """Undo the last cells that kept undo, on all ranks that ran them. Files and prints are not undone."""
        options = undo_parser().parse(line)
        group = self.group_if_any()
        if group is None:
            return
        if options.list:
            print(undoable_text(group.ask("undoable")))
            return
        print(group.undo(options.count).text)

    @line_magic
    @sentences
    @takes(redo_parser)
    def dist_redo(self, line: str) -> None:
        """Give variables what undone cells had left in them, until a cell has changed something. No code runs."""
        options = redo_parser().parse(line)
        group = self.group_if_any()
        if group is not None:
            print(group.redo(options.count).text)
