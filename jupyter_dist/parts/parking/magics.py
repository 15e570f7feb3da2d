"""Its magics: `%dist_park` and `%dist_resume`."""

from __future__ import annotations

from IPython.core.magic import line_magic, magics_class

from jupyter_dist.magics.base import RankMagics
from jupyter_dist.magics.failures import MagicParser, no_arguments, sentences, takes


def park_parser() -> MagicParser:
    """Return the parser of `%dist_park`."""
    parser = MagicParser("%dist_park", description="Give the devices of this notebook's group back while it is idle.")
    parser.add_argument("--to", choices=("host", "file"), default="host", help="where tensors go (default: host)")
    parser.add_argument("--folder", help="for files: an absolute path (default: the group's folder)")
    return parser


@magics_class
class ParkingMagics(RankMagics):
    """Parking of a notebook's group in a kernel beside the ranks."""

    @line_magic
    @sentences
    @takes(park_parser)
    def dist_park(self, line: str) -> None:
        """Give the devices of this notebook's group back; its ranks keep all variables. The next cell resumes it."""
        options = park_parser().parse(line)
        group = self.group_if_any()
        if group is not None:
            print(group.park(options.to, options.folder).model["note"])

    @line_magic
    @sentences
    def dist_resume(self, line: str) -> None:
        """Bring the tensors of this notebook's parked group back to its devices, as the next cell does."""
        no_arguments("%dist_resume", line)
        group = self.group_if_any()
        if group is not None:
            print(group.resume().model["note"])
