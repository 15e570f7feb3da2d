"""jupyter_dist on a GPU, through its public Python client and HTTP API: does it do what its documentation says?

    python -m product [--dry] [--out FILE] [--seconds N] [NAME ...]        README.md says how to read the results

Each experiment has a Jupyter server of its own, which is killed with everything below it afterwards. On a machine with
one GPU several ranks share it (`devices=[0, 0]`); with more each rank has its own.
"""

import sys

from kit import lab

from . import devices, hangs, models, parking, slow

__all__ = ["devices", "hangs", "models", "parking", "slow"]

sys.exit(lab.main("product"))
