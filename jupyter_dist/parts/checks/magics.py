"""Its magic, `%dist_checks`."""

from __future__ import annotations

from IPython.core.magic import line_magic, magics_class

from jupyter_dist.client.answers.texts import answer_text
from jupyter_dist.magics.base import RankMagics
from jupyter_dist.magics.failures import DistError, sentences
from jupyter_dist.protocol.operations import BY_NAME


@magics_class
class ChecksMagics(RankMagics):
    """Checks of training, in a kernel beside the ranks."""

    @line_magic
    @sentences
    def dist_checks(self, line: str) -> None:
        """Print the checks of the last cell; on, off: check the cells of the group, or do not."""
        word = line.strip()
        if word not in ("on", "off", ""):
            raise DistError(f"'{word}' is neither on nor off. Write %dist_checks off.")
        group = self.group_if_any()
        if group is not None:
            answer = group.set_checks(word == "on") if word else group.checks()
            print(answer_text(BY_NAME["set_checks" if word else "checks"], answer.model))
