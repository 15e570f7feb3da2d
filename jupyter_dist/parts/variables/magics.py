"""Its magics: `%dist_variables` and `%dist_compare`."""

from __future__ import annotations

from IPython.core.magic import line_magic, magics_class

from jupyter_dist.client.displays.live import show_table
from jupyter_dist.magics.base import RankMagics
from jupyter_dist.magics.failures import MagicParser, sentences, takes
from jupyter_dist.protocol.ranks import EXAMPLES


def variables_parser() -> MagicParser:
    """Return the parser of `%dist_variables`."""
    parser = MagicParser("%dist_variables", description="List the variables of ranks, equal ones once.")
    parser.add_argument("-r", "--ranks", default="all", help=f"{EXAMPLES} (all)")
    return parser


def compare_parser() -> MagicParser:
    """Return the parser of `%dist_compare`."""
    parser = MagicParser("%dist_compare", description="Show what of a variable differs between ranks.")
    parser.add_argument("name", help="a variable or a part of it: model, model.weight, states[0]")
    parser.add_argument("-r", "--ranks", default="all", help=f"{EXAMPLES} (all)")
    return parser


@magics_class
class VariableMagics(RankMagics):
    """The variables of ranks in a kernel beside them."""

    @line_magic
    @sentences
    @takes(variables_parser)
    def dist_variables(self, line: str) -> None:
        """List the variables of ranks, equal ones once; what differs is marked. Ranks that run a cell are not asked."""
        options = variables_parser().parse(line)
        group = self.group_if_any()
        if group is not None:
            show_table(group.variables(options.ranks))

    @line_magic
    @sentences
    @takes(compare_parser)
    def dist_compare(self, line: str) -> None:
        """Show which parts of a variable differ on which ranks, by how much, and which could not be compared."""
        options = compare_parser().parse(line)
        group = self.group_if_any()
        if group is not None:
            show_table(group.compare(options.name, options.ranks))
