"""Its magics: `%dist_save` and `%dist_restore`."""

from __future__ import annotations

from IPython.core.magic import line_magic, magics_class

from jupyter_dist.magics.base import RankMagics
from jupyter_dist.magics.failures import MagicParser, sentences, takes

from .text import preview_text, save_text, saves_text


def save_parser() -> MagicParser:
    """Return the parser of `%dist_save`."""
    parser = MagicParser("%dist_save", description="Save the variables of all ranks; an earlier save is replaced.")
    parser.add_argument("name", nargs="?", help="of the save (default: the group's name and the time)")
    parser.add_argument("--folder", help="a folder of saves, relative to the server's root (default: the server's)")
    parser.add_argument("--overwrite", action="store_true", help="replace a save of another group, too")
    parser.add_argument("--preview", action="store_true", help="save nothing; list what cannot be saved")
    return parser


def restore_parser() -> MagicParser:
    """Return the parser of `%dist_restore`."""
    parser = MagicParser("%dist_restore", description="Give all ranks the variables of a save.")
    parser.add_argument("name", nargs="?", help="of the save; without one, the saves are listed")
    parser.add_argument("--folder", help="a folder of saves, relative to the server's root (default: the server's)")
    parser.add_argument("--rerun", action="store_true", help="run the cells again whose names could not be saved")
    parser.add_argument("--any-version", action="store_true", help="try a save of another version of Python")
    return parser


@magics_class
class SaveMagics(RankMagics):
    """Saves and restores of ranks in a kernel beside them."""

    @line_magic
    @sentences
    @takes(save_parser)
    def dist_save(self, line: str) -> None:
        """Save the variables of all ranks, when no cell runs; print what cannot be saved, and the cell that made it."""
        options = save_parser().parse(line)
        group = self.session.group()
        if options.preview:
            print(preview_text(group.preview_save().model))
            return
        print(save_text(group.save(options.name, folder=options.folder, overwrite=options.overwrite).model))

    @line_magic
    @sentences
    @takes(restore_parser)
    def dist_restore(self, line: str) -> None:
        """Give all ranks the variables of a save, on all ranks or on none; without a name, list the saves."""
        options = restore_parser().parse(line)
        group = self.session.group()
        if options.name is None:
            print(saves_text(group.ask("saves", folder=options.folder)))
            return
        place, is_any = options.folder, options.any_version
        print(repr(group.restore(options.name, folder=place, rerun=options.rerun, any_version=is_any)))
