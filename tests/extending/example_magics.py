"""What another package may add to the magics of a kernel: docs/extending.md shows this class, and a test runs it."""

from IPython.core.magic import line_magic, magics_class

from jupyter_dist.magics.base import RankMagics
from jupyter_dist.magics.failures import sentences


@magics_class
class SeedMagics(RankMagics):
    """Random numbers on ranks."""

    @line_magic
    @sentences
    def seed(self, line):
        """Seed torch on all ranks: `%seed 7`."""
        self.session.run(f"import torch\ntorch.manual_seed({int(line)})", show=False)
        print(f"Seeded {self.session.group().world_size} ranks with {int(line)}.")
