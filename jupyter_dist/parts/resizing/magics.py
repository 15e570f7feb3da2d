"""Its magic, `%dist_resize`."""

from __future__ import annotations

from IPython.core.magic import line_magic, magics_class

from jupyter_dist.magics.base import RankMagics
from jupyter_dist.magics.failures import MagicParser, sentences, takes

from .text import resized_text


def resize_parser() -> MagicParser:
    """Return the parser of `%dist_resize`."""
    parser = MagicParser("%dist_resize", description="Change the number of ranks.")
    parser.add_argument("num_ranks", type=int, help="how many ranks there are to be")
    parser.add_argument("--others", choices=("refuse", "keep", "copy"), default="refuse", help="what ranks differ in")
    return parser


@magics_class
class ResizeMagics(RankMagics):
    """A change of a notebook's group in a kernel beside the ranks."""

    @line_magic
    @sentences
    @takes(resize_parser)
    def dist_resize(self, line: str) -> None:
        """Change the number of ranks of this notebook's group; ranks that stay keep their variables."""
        options = resize_parser().parse(line)
        print(resized_text(self.session.group().resize(options.num_ranks, others=options.others).model))
