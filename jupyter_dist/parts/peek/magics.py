"""Its magic, `%dist_peek`."""

from __future__ import annotations

from IPython.core.magic import line_magic, magics_class

from jupyter_dist.client.answers.texts import answer_text
from jupyter_dist.magics.base import RankMagics
from jupyter_dist.magics.failures import sentences
from jupyter_dist.protocol.operations import BY_NAME


@magics_class
class PeekMagics(RankMagics):
    """Values of busy ranks, in a kernel beside them."""

    @line_magic
    @sentences
    def dist_peek(self, line: str) -> None:
        """Print the values of names on all ranks, also while they run a cell; by default of the running function."""
        group = self.group_if_any()
        if group is not None:
            print(answer_text(BY_NAME["peek_values"], group.peek(*line.replace(",", " ").split()).model))
