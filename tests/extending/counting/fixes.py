"""A fix of a module, as a part makes it on ranks."""

from jupyter_dist.rank.frameworks.fix import Fix


def count(_, module):
    """Say that it was here."""
    module.counted = "mended"


FIXES = {"colorsys": [Fix("counting", "1", "it says that it was here", count)]}
